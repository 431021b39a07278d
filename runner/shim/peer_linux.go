package shim

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// trusted reports whether a client is this user, or root. The folder is closed to
// others; this holds if it isn't.
func trusted(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	ok := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		ok = err == nil && (peer.Uid == 0 || int(peer.Uid) == os.Geteuid())
	})
	return err == nil && ok
}
