package rig

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Gate is a named pipe in the workspace at which a command and the test meet.
// The test keeps it open for reading and writing, so neither side ever hangs in
// opening it, and what was written waits for its reader.
type Gate struct {
	t    testing.TB
	path string
	f    *os.File
}

// NewGate makes one in a workspace; the test's end closes it.
func NewGate(t testing.TB, workspace, name string) *Gate {
	t.Helper()
	g := &Gate{t: t, path: filepath.Join(workspace, name)}
	if err := syscall.Mkfifo(g.path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(g.path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.f = f
	t.Cleanup(func() { _ = f.Close() })
	return g
}

// Open lets one command that reads the gate go on.
func (g *Gate) Open() {
	g.t.Helper()
	if _, err := g.f.WriteString("go\n"); err != nil {
		g.t.Fatalf("open the gate %s: %v", g.path, err)
	}
}

// Wait waits until a command has written a line to the gate, and gives it.
func (g *Gate) Wait() string {
	g.t.Helper()
	if err := g.f.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		g.t.Fatal(err)
	}
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := g.f.Read(one); err != nil {
			g.t.Fatalf("waited in vain at the gate %s: %v", g.path, err)
		}
		if one[0] == '\n' {
			return string(line)
		}
		line = append(line, one[0])
	}
}

// Read is a script that passes the gate, for a command.
func (g *Gate) Read() string { return "read -r _ < " + filepath.Base(g.path) }

// Tell is a script that writes a line to the gate, for a command.
func (g *Gate) Tell(what string) string { return "echo " + what + " > " + filepath.Base(g.path) }
