package browser

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/e2e/rig"
	"holdfast/e2e/seed"
	"holdfast/store/storetest"
)

const password = "correct horse battery"

// world is what the servers and the tabs of one test share: a database, a user
// and a workspace.
type world struct {
	t     *testing.T
	db    *storetest.DB
	dir   string // everything of this world lies below
	work  string // the workspace
	email string
	pass  string   // of the user
	token string   // of the API, made when it is needed
	flags []string // of its servers

	mu      sync.Mutex
	servers []*server
}

// newWorld makes a world with a user. It takes a place, which the test's end gives back.
func newWorld(t *testing.T, database string) *world {
	t.Helper()
	w := newEmptyWorld(t, database)
	w.mustRun(w.pass+"\n", "user", "add", w.email, "--password-stdin")
	return w
}

// newSeededWorld makes a world of the sessions that the package seed makes, and
// says which they are.
func newSeededWorld(t *testing.T) (*world, *seed.Result) {
	t.Helper()
	dir := newPlace(t)
	r, err := seed.Fill(t.Context(), seed.Options{Dir: dir, Binary: mustBinary(t), Large: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: &storetest.DB{Name: "sqlite", URL: r.Database}, dir: dir, work: r.Workspaces, email: r.Email, pass: r.Password, token: r.Token, flags: []string{"--max-running", "1"}}
	t.Cleanup(w.finish)
	return w, r
}

// newEmptyWorld makes a world that nobody can sign in to yet.
func newEmptyWorld(t *testing.T, database string) *world {
	t.Helper()
	dir := newPlace(t)
	w := &world{
		t: t, db: storetest.New(t, database), dir: dir, work: filepath.Join(dir, "work"),
		email: strings.ToLower(rand.Text()[:8]) + "@example.org", pass: password, flags: quick,
	}
	if err := os.Mkdir(w.work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.finish)
	return w
}

// newPlace takes a place for a world, which the test's end gives back, and gives
// an empty folder for it.
func newPlace(t *testing.T) string {
	t.Helper()
	mustBinary(t)
	places <- struct{}{}
	t.Cleanup(func() { <-places })
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// finish ends all servers; of a test that failed their logs are printed.
func (w *world) finish() {
	if w.t.Failed() {
		w.t.Log(rig.Machine())
	}
	for _, s := range w.servers {
		s.end()
		if w.t.Failed() {
			w.t.Logf("log of the server %s:\n%s", s.addr, tail(s.err.String(), 4000))
		}
	}
}

// mustRun runs the binary to its end with flags for this world's database, and
// gives standard output.
func (w *world) mustRun(stdin string, args ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, mustBinary(w.t), append([]string{"--database", w.db.URL, "--state", w.state()}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = w.dir, environment(w.dir), strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

// state is the state folder of this world's servers.
func (w *world) state() string { return filepath.Join(w.dir, "state") }

// environment is what the binary gets: nothing of the developer's own.
func environment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8"}
}

// gate makes one.
func (w *world) gate(name string) *rig.Gate {
	w.t.Helper()
	return rig.NewGate(w.t, w.work, name)
}

// wantEffects fails unless exactly these effects happened, in this order.
func (w *world) wantEffects(want ...string) {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.work, "effects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(string(raw)), " "); got != strings.Join(want, " ") {
		w.t.Errorf("the effects are %q, want %q", got, strings.Join(want, " "))
	}
}
