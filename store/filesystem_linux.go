package store

import (
	"fmt"

	"golang.org/x/sys/unix"
)

var networkNames = map[int64]string{
	unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB2", unix.CIFS_SUPER_MAGIC: "CIFS",
	unix.CODA_SUPER_MAGIC: "Coda", unix.NCP_SUPER_MAGIC: "NCP", unix.AFS_SUPER_MAGIC: "AFS", unix.V9FS_MAGIC: "9P", unix.CEPH_SUPER_MAGIC: "Ceph",
}

// networkFileSystem names the network file system that dir lies on, or "".
func networkFileSystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return networkNames[st.Type]
}

// birthOf names a file so that no copy of it has the name: by its inode and the
// moment when it was made, to the nanosecond. Neither changes with a restart or a
// move within the file system, as the number of a device may. Where a file system
// keeps no such moment that number has to do.
func birthOf(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", err
	}
	if st.Mask&unix.STATX_BTIME == 0 {
		return fmt.Sprintf("inode %d of device %d:%d", st.Ino, st.Dev_major, st.Dev_minor), nil
	}
	return fmt.Sprintf("inode %d born %d.%09d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}
