//go:build !linux

package store

import (
	"fmt"
	"syscall"
)

// networkFileSystem knows nothing outside Linux: docs/operations.md says so.
func networkFileSystem(string) string { return "" }

// birthOf names a file so that no copy of it on this host has the name.
func birthOf(path string) (string, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return "", err
	}
	return fmt.Sprintf("inode %d of device %d", st.Ino, st.Dev), nil
}
