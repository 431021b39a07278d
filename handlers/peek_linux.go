package handlers

import (
	"errors"
	"net"
	"syscall"
)

// hungUp tells whether the client has closed its end. fasthttp notices that only
// when several writes have failed; a look at the socket tells at once.
func hungUp(conn net.Conn) bool {
	sc, ok := conn.(syscall.Conn)
	if !ok { // a test's connection
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waits := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		gone = (err == nil && n == 0) || (err != nil && !waits)
	})
	return gone || err != nil
}
