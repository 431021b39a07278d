package shim

import (
	"os"

	"golang.org/x/sys/unix"
)

// punch gives the disk back what a file holds before an offset; its length, and what
// comes behind, stay. A file system that can't says so.
func punch(file *os.File, upTo int64) error {
	const whole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	for {
		if err := unix.Fallocate(int(file.Fd()), whole, 0, upTo); err != unix.EINTR {
			return err
		}
	}
}
