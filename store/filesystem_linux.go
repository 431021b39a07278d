package store

import "golang.org/x/sys/unix"

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
