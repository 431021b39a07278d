//go:build !linux

package shim

import "net"

// trusted relies on the folder's permissions here.
func trusted(*net.UnixConn) bool { return true }

func peerPID(*net.UnixConn) int { return 0 }
