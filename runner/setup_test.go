package runner_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/runbook"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "shim" { // this binary keeps the commands of its tests
		os.Exit(shim.Main())
	}
	if err := tool.BecomeSubreaper(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
}

// patience bounds what a test waits for; it is reached only when the test fails.
const patience = 2 * time.Minute

// bench is one worker on one journal, with a user and a workspace.
type bench struct {
	t     *testing.T
	s     *store.Store
	owner string
	dir   string // the workspace
	opts  runner.Options
}

func setup(t *testing.T, s *store.Store, with ...func(*runner.Options)) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	spaces, err := runner.NewWorkspaces([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, s: s, owner: storetest.MustUser(t, s).ID, dir: dir}
	b.opts = runner.Options{
		Store: s, Logger: slog.New(slog.DiscardHandler), WorkerID: "wrk_" + rand.Text(), StateFolderID: "fld_" + rand.Text(), Workspaces: spaces,
		Agents: []runner.Agent{runbook.Agent{}}, Shims: shims(t, t.TempDir()), MaxRunning: 4, Lease: 30 * time.Second, Renew: 10 * time.Second, Sweep: time.Hour,
		Orphan: patience, // of what a run of the tests leaves that is killed
		Env:    tool.BaseEnv(os.Environ()), Version: "test",
	}
	for _, f := range with {
		f(&b.opts)
	}
	return b
}

// shims opens the folder of shims of a state folder.
func shims(t *testing.T, state string) *shim.Root {
	t.Helper()
	root, err := shim.Open(filepath.Join(state, "shims"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endAll(t, root) })
	return root
}

// endAll ends what a test that failed has left running under its shims.
func endAll(t *testing.T, root *shim.Root) {
	t.Helper()
	root.Close()
	ids, err := root.List()
	if err != nil { // the test has removed the folder
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, id := range ids {
		child, err := root.Attach(ctx, id)
		if errors.Is(err, shim.ErrLost) {
			continue
		}
		if err == nil {
			if err = child.End("the test is over", time.Millisecond); err == nil {
				_, err = child.Follow(ctx, 0, func([]tool.Piece, int64) error { return nil })
			}
			_ = child.Close()
		}
		if err != nil && !errors.Is(err, shim.ErrLost) {
			t.Errorf("end what runs under %s: %v", id, err)
		}
	}
}

// start starts the worker; it is stopped when the test ends.
func (b *bench) start(with ...func(*runner.Runner)) *runner.Runner {
	b.t.Helper()
	r, err := runner.New(b.opts)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, w := range with {
		w(r)
	}
	if err := r.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(r.Stop)
	return r
}

// session makes a session in which echo, cat, touch and the like are allowed.
func (b *bench) session(prompt string, with ...func(*store.NewSession)) string {
	b.t.Helper()
	folder, marker, err := b.opts.Workspaces.Prepare(b.t.Context(), b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	n := store.NewSession{
		Title: "mission", Agent: runbook.Name, Workspace: folder, WorkspaceID: marker, Preset: "workspace",
		Rules: []journal.Rule{{Permission: "shell", Pattern: "*", Action: "allow"}, {Permission: "edit", Pattern: "*", Action: "allow"}},
	}
	if prompt != "" {
		n.Prompt = &store.PromptInput{Text: prompt, Delivery: journal.Queue}
	}
	for _, f := range with {
		f(&n)
	}
	s, _, err := b.s.CreateSession(b.t.Context(), b.owner, rand.Text(), n)
	if err != nil {
		b.t.Fatal(err)
	}
	return s.ID
}

func asking(n *store.NewSession) { n.Preset, n.Rules = "ask_all", nil }

// steps writes a mission of sh blocks.
func steps(scripts ...string) string {
	var out strings.Builder
	for _, s := range scripts {
		out.WriteString("```sh\n" + s + "\n```\n\n")
	}
	return out.String()
}

// until waits, woken by commits, until the session's state satisfies a condition.
func (b *bench) until(session, what string, ok func(store.Session) bool) store.Session {
	b.t.Helper()
	wake, cancel := b.s.Subscribe(session)
	defer cancel()
	ctx, stop := context.WithTimeout(b.t.Context(), patience)
	defer stop()
	poll := time.NewTicker(time.Second) // a claim that expires wakes nobody
	defer poll.Stop()
	for {
		s, err := b.s.Session(ctx, b.owner, session)
		if err == nil && ok(s) {
			return s
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("waited in vain until %s; state %s, journal:\n%s", what, s.State.Base, b.dump(session))
		case <-wake:
		case <-poll.C:
		}
	}
}

func (b *bench) untilState(session string, want journal.ExecutionState) store.Session {
	b.t.Helper()
	return b.until(session, "it is "+string(want), func(s store.Session) bool {
		got, _ := s.Execution()
		return got == want && s.Claim == nil
	})
}

// untilKind waits until the journal holds n events of a kind.
func (b *bench) untilKind(session string, kind journal.Kind, n int) []journal.Event {
	b.t.Helper()
	var evs []journal.Event
	b.until(session, "there is a "+string(kind), func(store.Session) bool {
		evs = storetest.Events(b.t, b.s, session)
		return storetest.CountKind(evs, kind) >= n
	})
	return evs
}

func (b *bench) dump(session string) string {
	var out strings.Builder
	for _, e := range storetest.Events(b.t, b.s, session) {
		out.WriteString(string(e.Kind) + " " + string(e.Data) + "\n")
	}
	return out.String()
}

// file reads a file of the workspace; "" if it isn't there.
func (b *bench) file(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) output(session string, i int) string {
	b.t.Helper()
	calls, err := b.s.Calls(b.t.Context(), b.owner, session, 0)
	if err != nil || len(calls) <= i {
		b.t.Fatalf("call %d of %d: %v", i, len(calls), err)
	}
	out, err := b.s.CallOutput(b.t.Context(), b.owner, calls[i].ID, 0, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(out.Data)
}

// fifo makes a pipe in the workspace by which a command and its test wait for each other.
func (b *bench) fifo(name string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	mustMkfifo(b.t, path)
	return path
}
