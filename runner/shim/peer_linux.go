package shim

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// trusted reports whether a client is this user, or root. The folder is closed to
// others; this holds if it isn't.
func trusted(conn *net.UnixConn) bool {
	peer := peerOf(conn)
	return peer != nil && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
}

// peerPID is the process that made the other end: of a shim's socket that shim, also while
// it is frozen. 0: nobody can tell.
func peerPID(conn *net.UnixConn) int {
	if peer := peerOf(conn); peer != nil {
		return int(peer.Pid)
	}
	return 0
}

func peerOf(conn *net.UnixConn) (peer *unix.Ucred) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	err = raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			peer = got
		}
	})
	if err != nil {
		return nil
	}
	return peer
}
