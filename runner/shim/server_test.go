package shim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"holdfast/runner/tool"
)

// serverVariable makes the test binary a server that a test kills: its value is the
// folder.
const serverVariable = "SHIM_TEST_SERVER"

// serveTest prepares the script SHIM_TEST_SCRIPT, says so, and opens the gate if it is
// told to on stdin. It never ends by itself.
func serveTest(dir string) {
	fail := func(err error) {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	r, err := Open(dir)
	if err != nil {
		fail(err)
	}
	c, err := r.Prepare(context.Background(), Spec{Spec: tool.Spec{
		CallID: "call_served", N: 1, Interp: []string{"sh", "-eu"}, Script: os.Getenv("SHIM_TEST_SCRIPT"), Dir: "/",
		Env: tool.BaseEnv(os.Environ()), Timeout: time.Hour,
	}})
	if err != nil {
		fail(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "prepared")
	var word string
	if _, err := fmt.Scan(&word); err == nil && word == "go" {
		if err := c.Go(); err != nil {
			fail(err)
		}
		_, _ = fmt.Fprintln(os.Stdout, "gone")
	}
	select {}
}

// selfCommand is the shim's command line, without what a server hands on.
func selfCommand(t *testing.T, r *Root) *exec.Cmd {
	t.Helper()
	return &exec.Cmd{Path: r.exe, Args: []string{"holdfast", "shim"}, Env: []string{}}
}

// testServer is a process that has prepared a command.
type testServer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// mustServe starts a server on a root, which has prepared the script.
func mustServe(t *testing.T, r *Root, script string) (*testServer, ID) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(tool.BaseEnv(os.Environ()), serverVariable+"="+r.dir, "SHIM_TEST_SCRIPT="+script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &testServer{cmd: cmd, stdin: stdin, out: bufio.NewReader(out)}
	t.Cleanup(func() { s.kill() })
	s.await(t, "prepared")
	return s, ID{"call_served", 1}
}

func (s *testServer) await(t *testing.T, word string) {
	t.Helper()
	if line, err := s.out.ReadString('\n'); line != word+"\n" {
		t.Fatalf("server said %q, %v, want %s", line, err, word)
	}
}

func (s *testServer) open(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(s.stdin, "go\n"); err != nil {
		t.Fatal(err)
	}
	s.await(t, "gone")
}

// kill ends it as kill -9 does.
func (s *testServer) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}
