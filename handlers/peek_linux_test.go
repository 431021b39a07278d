package handlers

import (
	"net"
	"testing"
)

func TestHungUp(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	var d net.Dialer
	client, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn := &softConn{TCPConn: server.(*net.TCPConn)} // as streams have it
	if hungUp(conn) {
		t.Error("a client that waits is taken for gone")
	}
	if _, err := client.Write([]byte("GET")); err != nil {
		t.Fatal(err)
	}
	if hungUp(conn) {
		t.Error("a client that speaks is taken for gone")
	}
	var b [3]byte
	if n, err := conn.Read(b[:]); n != 3 || err != nil {
		t.Errorf("looking took from what the client said: %d, %v", n, err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client to be gone", func() bool { return hungUp(conn) })
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if !hungUp(conn) {
		t.Error("a closed connection is taken for a reader")
	}
}
