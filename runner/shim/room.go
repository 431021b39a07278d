package shim

import "golang.org/x/sys/unix"

// HasRoom reports whether the disk of the folder has at least so many bytes left for this
// process, or nobody can tell.
func (r *Root) HasRoom(bytes int64) bool {
	var st unix.Statfs_t
	if unix.Statfs(r.dir, &st) != nil {
		return true
	}
	return st.Bavail*uint64(st.Bsize) >= uint64(bytes)
}
