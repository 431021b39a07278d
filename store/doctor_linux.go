package store

import "golang.org/x/sys/unix"

// risky are the file systems on which a SQLite journal may be lost, though they
// are no network's, with the reason.
var risky = map[int64][2]string{
	unix.OVERLAYFS_SUPER_MAGIC: {"overlay", "what a container writes there goes with the container"},
	unix.TMPFS_MAGIC:           {"tmpfs", "it lies in memory, and is gone after a restart of the host"},
	unix.RAMFS_MAGIC:           {"ramfs", "it lies in memory, and is gone after a restart of the host"},
	unix.FUSE_SUPER_MAGIC:      {"FUSE", "whether its locks and fsync can be relied on depends on what is behind it"},
}

// disk is what is known of the file system that a folder lies on.
type disk struct {
	network    string // its name, if it is a network's
	name, why  string // if it is risky
	free, size uint64 // bytes; size 0: unknown
}

func diskOf(dir string) disk {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return disk{}
	}
	r := risky[st.Type]
	return disk{network: networkNames[st.Type], name: r[0], why: r[1], free: st.Bavail * uint64(st.Bsize), size: st.Blocks * uint64(st.Bsize)}
}
