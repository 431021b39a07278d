package handlers

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
)

// How long, and over how much, a refused request is still read.
const (
	lingerTime  = 2 * time.Second
	lingerBytes = 32 << 20
)

// lingering gives connections that can end softly.
type lingering struct{ net.Listener }

func (l lingering) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &softConn{TCPConn: tcp}, err
	}
	return c, err
}

// softConn is a connection whose refused request may not have been read: closing
// it at once would reset it, and the client would never see why.
type softConn struct {
	*net.TCPConn
	unread atomic.Bool
}

// linger marks the connection of a request that was refused before it was read.
func linger(c *fiber.Ctx) {
	if conn, ok := c.Context().Conn().(*softConn); ok {
		conn.unread.Store(true)
	}
}

// Close closes the connection; one that has something unread says first that
// nothing more comes, and lets the client finish for a moment.
func (c *softConn) Close() error {
	if !c.unread.Swap(false) {
		return c.TCPConn.Close()
	}
	err := errors.Join(c.CloseWrite(), c.SetReadDeadline(time.Now().Add(lingerTime)))
	if err == nil {
		// However this ends, the connection is closed next.
		_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytes)
	}
	return c.TCPConn.Close()
}
