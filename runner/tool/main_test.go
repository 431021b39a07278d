package tool

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience fails a test that waits in vain; nothing waits for it to pass.
const patience = 2 * time.Minute

// serverVariable makes the test binary a server that a test kills.
const serverVariable = "TOOL_TEST_SERVER"

func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv(serverVariable); ok {
		serve(script)
		return
	}
	goleak.VerifyTestMain(m)
}

// serve prepares a command, tells its process, and runs it if told to on
// stdin. It never ends by itself.
func serve(script string) {
	c, err := Prepare(Spec{CallID: os.Getenv("TOOL_TEST_CALL"), Interp: []string{"sh", "-eu"}, Script: script, Dir: "/", Env: os.Environ()})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	p := c.Process()
	_, _ = fmt.Fprintln(os.Stdout, p.PID, p.StartedTicks, p.BootID, p.Host)
	var word string
	if _, err := fmt.Scan(&word); err == nil && word == "run" {
		c.Run(context.Background())
	}
	select {}
}

// kept collects a run's output.
type kept struct {
	mu     sync.Mutex
	pieces []Piece
	text   map[string]string
	seen   map[string]chan struct{}
}

func newKept() *kept { return &kept{text: map[string]string{}, seen: map[string]chan struct{}{}} }

func (k *kept) take(pieces []Piece) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pieces = append(k.pieces, pieces...)
	for _, p := range pieces {
		k.text[p.Stream] += p.Text
	}
	for words, ch := range k.seen {
		if strings.Contains(k.text["stdout"], words) {
			close(ch)
			delete(k.seen, words)
		}
	}
	return nil
}

// until returns a channel that is closed once stdout holds words.
func (k *kept) until(words string) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	ch := make(chan struct{})
	k.seen[words] = ch
	return ch
}

func await(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}

// specOf returns a runnable spec and where its output goes.
func specOf(t *testing.T, script string) (Spec, *kept) {
	t.Helper()
	k := newKept()
	return Spec{
		CallID: "call-" + strings.ReplaceAll(t.Name(), "/", "-"),
		Interp: []string{"sh", "-eu"},
		Script: script,
		Dir:    t.TempDir(),
		Env:    BaseEnv(os.Environ()),
		Output: k.take,
	}, k
}

func mustPrepare(t *testing.T, spec Spec) *Command {
	t.Helper()
	c, err := Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Abandon)
	return c
}

// run runs spec to its end.
func run(t *testing.T, spec Spec) Result {
	t.Helper()
	return await1(t, start(t.Context(), t, mustPrepare(t, spec)))
}

func start(ctx context.Context, t *testing.T, c *Command) <-chan Result {
	t.Helper()
	done := make(chan Result, 1)
	go func() { done <- c.Run(ctx) }()
	return done
}

func await1(t *testing.T, done <-chan Result) Result {
	t.Helper()
	select {
	case r := <-done:
		return r
	case <-time.After(2 * patience):
		t.Fatal("Run hangs")
		return Result{}
	}
}

func wantExit(t *testing.T, r Result, code int) {
	t.Helper()
	if r.ExitCode == nil || *r.ExitCode != code || r.Signal != "" || r.Reason != "" || r.Err != nil || len(r.Survivors) > 0 {
		t.Errorf("got %s, want exit code %d", show(r), code)
	}
}

func show(r Result) string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("exit %s, signal %q, reason %q, error %v, survivors %v", code, r.Signal, r.Reason, r.Err, r.Survivors)
}
