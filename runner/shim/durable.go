package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// record reads a child's exit record; nil if there is none.
func (r *Root) record(id ID) (*Exit, error) {
	data, err := os.ReadFile(r.path(id, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var exit Exit
	if err := json.Unmarshal(data, &exit); err != nil {
		return nil, fmt.Errorf("%s: %w", recordName, err)
	}
	return &exit, nil
}

// writeSynced makes a file that is on the disk when it returns.
func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return fillSynced(file, data)
}

// fillSynced writes, syncs and closes a new file.
func fillSynced(file *os.File, data []byte) error {
	_, err := file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDirs makes the names in folders durable.
func syncDirs(dirs ...string) error {
	for _, name := range dirs {
		dir, err := os.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
			return err
		}
	}
	return nil
}

// noSpace reports whether an error may pass by itself: somebody makes room.
func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// backoff are growing pauses. The zero value is ready; who expects less than 20 ms
// sets last.
type backoff struct{ last time.Duration }

// next returns a timer for the next pause: 20 ms, or twice last, at most 2 s.
func (b *backoff) next() *time.Timer {
	if b.last *= 2; b.last == 0 {
		b.last = 20 * time.Millisecond
	}
	b.last = min(b.last, 2*time.Second)
	return time.NewTimer(b.last)
}

// openAt opens a file of the folder dir. The folder is meant, not its path: it
// may be moved while the command runs.
func openAt(dir *os.File, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(fd), name), nil
	}
}

// existsAt reports whether a folder holds a name.
func existsAt(dir *os.File, name string) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}
