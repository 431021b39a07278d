// Package rig is what the tests of the built binary have in common: processes that
// end with the tests, what they print, gates at which a command and a test meet.
package rig

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Patience bounds what a test waits for; it is met only by a test that fails. It is long:
// a machine that others use, too, may stand still for a minute or two.
const Patience = 3 * time.Minute

var nextPort atomic.Int64

// FreeAddr gives an address on which nothing listens, outside of the range from
// which the kernel takes ports for outgoing connections.
func FreeAddr(t testing.TB) string {
	t.Helper()
	nextPort.CompareAndSwap(0, time.Now().UnixNano()%8000+1)
	for range 200 {
		addr := "127.0.0.1:" + strconv.FormatInt(20000+nextPort.Add(1)%12000, 10)
		var lc net.ListenConfig
		ln, err := lc.Listen(context.WithoutCancel(t.Context()), "tcp", addr)
		if err == nil && ln.Close() == nil {
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// Eventually looks at something that tells nobody of its changes until it is so.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	look := time.NewTicker(25 * time.Millisecond)
	defer look.Stop()
	late := time.After(Patience)
	for !ok() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// Steps writes a mission of sh blocks.
func Steps(scripts ...string) string {
	var out strings.Builder
	for _, s := range scripts {
		out.WriteString("```sh\n" + s + "\n```\n\n")
	}
	return out.String()
}

// Effect is a script that has an effect which can be counted, in the file effects.
func Effect(name string) string { return "echo " + name + " >> effects" }

// Tail gives the end of a text.
func Tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
