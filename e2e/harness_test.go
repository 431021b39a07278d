package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/e2e/rig"
	"holdfast/store/storetest"
)

// What of the rig is used everywhere, by a short name.
const patience = rig.Patience

var steps, effect, tail, eventually = rig.Steps, rig.Effect, rig.Tail, rig.Eventually

// binary is the product, and agentBinary the agent that speaks ACP; both are built
// once for all tests.
var binary, agentBinary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "holdfast-e2e-*")
	if err == nil {
		binary, agentBinary = filepath.Join(dir, "holdfast"), filepath.Join(dir, "fakeagent")
		err = errors.Join(build(binary, "."), build(agentBinary, "./e2e/fakeagent"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func build(to, pkg string) error {
	args := []string{"build", "-o", to}
	if crashpoints {
		args = append(args, "-tags", "crashpoints")
	}
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// places bounds how many worlds live at once: each has servers of its own.
var places = make(chan struct{}, 4)

// each runs body on each database, as parallel subtests named sqlite and postgres.
func each(t *testing.T, body func(t *testing.T, w *world)) {
	t.Helper()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t, newWorld(t, name))
		})
	}
}

// world is what the servers of one test share: a database with a user and a
// token, and a workspace.
type world struct {
	t     *testing.T
	db    *storetest.DB
	dir   string // everything of this world lies below
	work  string // the workspace
	email string
	token string

	mu       sync.Mutex
	servers  []*server
	acked    []receipt
	sessions []string
}

const password = "correct horse battery"

// newWorld makes a world on a database. It takes a place, which the test's end gives back.
func newWorld(t *testing.T, database string) *world {
	t.Helper()
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: storetest.New(t, database), dir: dir, work: filepath.Join(dir, "work"), email: strings.ToLower(rand.Text()[:8]) + "@example.org"}
	if err := os.Mkdir(w.work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.finish)
	w.mustRun(password+"\n", "user", "add", w.email, "--password-stdin")
	w.token = w.newToken("all")
	return w
}

// newToken makes a token of the world's user by the command line.
func (w *world) newToken(scope string) string {
	w.t.Helper()
	return strings.TrimSpace(w.mustRun("", "token", "new", w.email, "--name", "e2e", "--scope", scope))
}

// finish ends all servers, then looks at what they left behind.
func (w *world) finish() {
	for _, s := range w.servers {
		s.end()
	}
	if !w.t.Failed() { // the first fault is the one to read
		w.checkJournal()
	}
	if w.t.Failed() {
		w.t.Log(rig.Machine())
		for _, s := range w.servers {
			w.t.Logf("log of the server %s:\n%s", s.state, tail(s.err.String(), 8000))
		}
	}
}

// state names a state folder of this world.
func (w *world) state(name string) string { return filepath.Join(w.dir, "state-"+name) }

// outcome is how a process ended.
type outcome struct {
	out, err string
	code     int
}

// words is what it printed, whose lines break anywhere, as one.
func (o outcome) words() string { return strings.Join(strings.Fields(o.out), " ") }

// run runs the binary to its end with flags for this world's database.
func (w *world) run(stdin string, args ...string) outcome {
	w.t.Helper()
	return execute(w.t, w.dir, stdin, nil, append([]string{"--database", w.db.URL, "--state", w.state("1")}, args...)...)
}

// mustRun is run for what must succeed; it gives standard output.
func (w *world) mustRun(stdin string, args ...string) string {
	w.t.Helper()
	o := w.run(stdin, args...)
	if o.code != 0 {
		w.t.Fatalf("holdfast %s: exit %d\n%s%s", strings.Join(args, " "), o.code, o.out, o.err)
	}
	return o.out
}

// execute runs the binary in a folder until it ends by itself.
func execute(t *testing.T, dir, stdin string, env []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, environment(dir, env), strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// environment is what the binary gets: nothing of the developer's own.
func environment(home string, extra []string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8"}, extra...)
}

// sql looks at the world's database from outside.
func (w *world) sql() *sql.DB { return w.db.SQL(w.t) }

// gate makes one.
func (w *world) gate(name string) *rig.Gate {
	w.t.Helper()
	return rig.NewGate(w.t, w.work, name)
}

// effects counts the effects of each name.
func (w *world) effects() map[string]int {
	w.t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(w.file("effects")) {
		out[strings.TrimSpace(line)]++
	}
	return out
}

// wantEffect fails unless an effect happened n times.
func (w *world) wantEffect(name string, n int) {
	w.t.Helper()
	if got := w.effects()[name]; got != n {
		w.t.Errorf("the effect %s happened %d times, want %d", name, got, n)
	}
}

// script puts an executable into the workspace.
func (w *world) script(name string, lines ...string) {
	w.t.Helper()
	text := "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(w.work, name), []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// file reads a file of the workspace; "" if it isn't there.
func (w *world) file(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	return string(b)
}
