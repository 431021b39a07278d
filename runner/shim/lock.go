package shim

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockPatience bounds how long a lock is tried that somebody holds who only looks.
const lockPatience = time.Second

// tryLock takes a lock (LOCK_SH or LOCK_EX) if it is free and reports whether it
// was.
func tryLock(file *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}

// unlock lets go at once, also of the copies that a process that is just being
// forked has until it executes its program.
func unlock(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_UN) }

// takeAlone takes the lock for itself and reports whether it could. False: a shim
// holds it. Who only looks holds it, shared, for a moment; that is waited for.
func takeAlone(file *os.File) (bool, error) {
	pause := time.Millisecond
	for start := time.Now(); ; {
		held, err := tryLock(file, unix.LOCK_EX)
		if held || err != nil {
			return held, err
		}
		looked, err := tryLock(file, unix.LOCK_SH)
		if err != nil || !looked || time.Since(start) > lockPatience {
			return false, err
		}
		if err := unlock(file); err != nil {
			return false, err
		}
		<-time.After(pause)
		pause *= 2
	}
}
