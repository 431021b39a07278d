package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/e2e/rig"
	"holdfast/store/storetest"
)

// stranger is a server of somebody who has just built the binary: no flags but
// an address, no user, nothing but an empty folder.
func stranger(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	w := &world{t: t, dir: dir, work: dir}
	s := &server{w: w, state: filepath.Join(dir, ".local", "state", "holdfast"), addr: rig.FreeAddr(t), out: rig.NewOutput(), err: rig.NewOutput()}
	if i := slices.Index(args, "--state"); i >= 0 {
		s.state = args[i+1]
	}
	s.client = newClient(w, "http://"+s.addr)
	cmd := exec.Command(binary, append(args, "--addr", s.addr)...)
	cmd.Dir, cmd.Env = dir, environment(dir, nil)
	cmd.Stdout, cmd.Stderr = s.out.Next(), s.err.Next()
	var err error
	s.cmd = cmd
	if s.exited, err = rig.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	s.ready()
	return s
}

// The two commands of the README: start, and open the printed link. All in
// plain forms: set up, hand over a mission, decide, see the result.
// proves PER-7 ADM-2 OWN-1 OWN-2
func TestE2E_FromAnEmptyFolderToTheFirstResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := stranger(t, dir)
	link := s.out.Await(s.exited, "Open ")
	u, err := url.Parse(link)
	if err != nil || u.Host != s.addr || u.Path != "/setup" || len(u.Query().Get("code")) < 40 {
		t.Fatalf("the printed link is %q:\n%s", link, s.out.String())
	}
	if got := s.out.Await(s.exited, "journal "); !strings.HasSuffix(got, "(WAL, synchronous=FULL)") {
		t.Errorf("it says of its journal: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".local", "state", "holdfast", "holdfast.db")); err != nil {
		t.Errorf("the journal isn't in the state folder of the XDG: %v", err)
	}

	b := newBrowser(t, s.base)
	b.visit("/setup?" + u.RawQuery)
	b.submitFor(http.StatusUnprocessableEntity, "/setup", map[string]string{"email": "ann@example.org", "password": "short"})
	b.submit("/setup", map[string]string{"email": "ann@example.org", "password": password})
	if b.at != "/sessions/new" {
		t.Fatalf("setting up led to %s", b.at)
	}
	b.submit("/sessions", map[string]string{"prompt": "# Say hello\n" + steps("echo hello from step one", effect("hello")), "preset": "ask_all"})
	page := b.at
	if !strings.HasPrefix(page, "/sessions/ses_") {
		t.Fatalf("the new session led to %s", page)
	}
	for range 3 { // echo, then echo and the file that it writes
		b.visitUntil(page, "a decision is asked for, or it is done", func() bool {
			return b.doc.Find("form[action$='/decision']").Length() > 0 || strings.Contains(b.text, "Finished its turn")
		})
		if b.doc.Find("form[action$='/decision']").Length() > 0 {
			b.submit("/decision", map[string]string{"reply": "once"})
		}
	}
	b.visitUntil(page, "it is finished", func() bool { return strings.Contains(b.text, "Finished its turn") })
	if !strings.Contains(b.text, "hello from step one") {
		t.Errorf("the page doesn't show what the step printed:\n%s", tail(b.text, 4000))
	}
	if got := s.w.file("effects"); got != "hello\n" {
		t.Errorf("effects %q", got)
	}

	t.Run("the link works once", func(t *testing.T) {
		other := newBrowser(t, s.base)
		res, err := other.http.Get(s.base + "/setup?" + u.RawQuery)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode < 400 && res.Request.URL.Path == "/setup" {
			t.Errorf("it answered %d a second time", res.StatusCode)
		}
	})
	t.Run("no second link once there is a user", func(t *testing.T) {
		s.kill9()
		again := stranger(t, dir)
		if strings.Contains(again.out.String(), "/setup") {
			t.Errorf("it prints a link again:\n%s", again.out.String())
		}
		b := newBrowser(t, again.base)
		b.signIn("ann@example.org")
		if !strings.Contains(b.visit(page), "hello from step one") {
			t.Error("the session isn't there after the kill")
		}
	})
}

// visitUntil reloads a page until it shows something.
func (b *browser) visitUntil(path, what string, ok func() bool) {
	b.t.Helper()
	eventually(b.t, what, func() bool { b.visit(path); return ok() })
}

// What is uncertain is reconciled by a form, too.
// proves CAL-6 PER-2
func TestE2E_ReconcilingInAPlainPage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("$$")+"; "+gate.Read(), effect("next")))
		up.Wait()
		s.powerCut()
		s.restart()
		s.untilQuiet(id, "uncertain")
		b := w.browser(s)
		b.signIn(w.email)
		b.visit("/needs-you")
		if !strings.Contains(b.text, "/sessions/"+id) {
			t.Errorf("the inbox doesn't lead to the session:\n%s", tail(b.text, 3000))
		}
		b.visit("/sessions/" + id)
		if !strings.Contains(b.text, "Stopped, outcome unknown") {
			t.Errorf("the page doesn't say that the outcome is unknown:\n%s", tail(b.text, 3000))
		}
		b.submitFor(http.StatusUnprocessableEntity, "/resolution", map[string]string{"outcome": "happened", "evidence": "", "then": "continue"})
		w.wantEffect("next", 0)
		b.submit("/resolution", map[string]string{"outcome": "happened", "evidence": "I looked", "then": "continue"})
		s.untilQuiet(id, "ready")
		w.wantEffect("next", 1)
	})
}

// proves LEA-5
func TestE2E_TheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	toml := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unknown, broken := toml("unknown.toml", "lease = \"30s\"\ncolour = \"red\"\n"), toml("broken.toml", "lease = \n")
	state := filepath.Join(dir, "state")
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a flag that isn't one", []string{"serve", "--colour", "red"}, 2, "--colour"},
		{"a command that isn't one", []string{"dance"}, 2, "dance"},
		{"a lease that isn't a time", []string{"serve", "--lease", "long"}, 2, "lease"},
		{"renewals too far apart", []string{"serve", "--lease", "9s", "--renew", "4s"}, 2, "a third"},
		{"no place", []string{"serve", "--max-running", "0"}, 2, "max-running"},
		{"no sweep", []string{"serve", "--sweep", "0s"}, 2, "sweep"},
		{"a log format that isn't one", []string{"--log-format", "xml", "serve"}, 2, "log-format"},
		{"a key that isn't one", []string{"serve", "--config", unknown}, 2, "colour"},
		{"a file that can't be read", []string{"serve", "--config", broken}, 2, "broken.toml"},
		{"a file that isn't there", []string{"serve", "--config", filepath.Join(dir, "none.toml")}, 2, "none.toml"},
		{"open to others, and no user", []string{"serve", "--addr", "0.0.0.0:0"}, 2, "user add"},
		{"an address that isn't one", []string{"serve", "--addr", "here"}, 2, "--addr"},
		{"a workspace that isn't there", []string{"serve", "--workspaces", filepath.Join(dir, "nowhere")}, 2, "nowhere"},
		{"a token of nobody", []string{"token", "new", "nobody@example.org", "--name", "x"}, 1, "there is no user nobody@example.org"},
		{"a scope that isn't one", []string{"token", "new", "a@example.org", "--name", "x", "--scope", "root"}, 2, "scope"},
		{"a time that isn't one", []string{"token", "new", "a@example.org", "--name", "x", "--expires", "soon"}, 2, "expires"},
		{"help", []string{"--help"}, 0, ""},
		{"help of a command", []string{"serve", "--help"}, 0, ""},
		{"the version", []string{"--version"}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := execute(t, dir, "", nil, append(tt.args, "--state", state)...)
			if o.code != tt.code || !strings.Contains(o.err, tt.says) {
				t.Errorf("exit %d, want %d saying %q: %s%s", o.code, tt.code, tt.says, o.out, o.err)
			}
			if tt.code == 0 && o.out == "" {
				t.Error("it says nothing")
			}
			if strings.Contains(o.err, "goroutine ") {
				t.Errorf("it panicked: %s", o.err)
			}
		})
	}
}

// Flags may stand before or after the command, in the environment, and in
// holdfast.toml; the flag wins, then the environment, then the file.
func TestE2E_WhereFlagsStand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "by-file.db")
	if err := os.WriteFile(filepath.Join(dir, "holdfast.toml"), []byte("database = \""+file+"\"\nworkspaces = [\".\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	has := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	for i, tt := range []struct {
		env  []string
		args func(db string) []string
	}{
		{nil, func(db string) []string { return []string{"--database", db, "migrate"} }},
		{nil, func(db string) []string { return []string{"migrate", "--database", db} }},
		{nil, func(db string) []string { return []string{"migrate", "--database=" + db} }},
	} {
		db := filepath.Join(dir, "flag-"+string(rune('a'+i))+".db")
		if o := execute(t, dir, "", tt.env, tt.args(db)...); o.code != 0 || !has(db) {
			t.Errorf("%v: exit %d, made %v: %s%s", tt.args(db), o.code, has(db), o.out, o.err)
		}
	}
	byEnv := filepath.Join(dir, "by-env.db")
	if o := execute(t, dir, "", []string{"HOLDFAST_DATABASE=" + byEnv}, "migrate"); o.code != 0 || !has(byEnv) || has(file) {
		t.Errorf("by the environment: exit %d, made %v, the file's %v: %s", o.code, has(byEnv), has(file), o.err)
	}
	if o := execute(t, dir, "", nil, "migrate"); o.code != 0 || !has(file) {
		t.Errorf("by holdfast.toml: exit %d, made %v: %s", o.code, has(file), o.err)
	}
}

// proves OWN-3 OWN-1
func TestE2E_UsersAndTokens(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission(steps(effect("once")), asking)
		s.untilQuiet(id, "waiting")
		per := s.pending(id)[0].ID
		decide := map[string]string{"reply": "once"}
		for scope, want := range map[string][3]int{"read": {200, 403, 403}, "prompt": {200, 202, 403}} {
			c := s.with(w.newToken(scope)) // beside the running server
			c.get("/api/v1/sessions/"+id).want(t, want[0])
			c.post("/api/v1/sessions/"+id+"/prompts", map[string]string{"text": "x", "delivery": "queue"}, "Idempotency-Key", newKey()).want(t, want[1])
			c.post("/api/v1/permissions/"+per+"/decision", decide).want(t, want[2])
		}
		w.wantEffect("once", 0)
		s.with("").get("/api/v1/sessions/"+id).problem(t, http.StatusUnauthorized, "")
		s.with("hf_nonsense").get("/api/v1/sessions/"+id).problem(t, http.StatusUnauthorized, "")

		// Another person sees nothing of it.
		w.mustRun("", "user", "add", "other@example.org")
		other := s.with(strings.TrimSpace(w.mustRun("", "token", "new", "other@example.org", "--name", "x")))
		other.get("/api/v1/sessions/"+id).problem(t, http.StatusNotFound, "")
		other.post("/api/v1/permissions/"+per+"/decision", decide).problem(t, http.StatusNotFound, "")
		if n := len(decode[items[session]](t, other.get("/api/v1/sessions").want(t, http.StatusOK)).Items); n != 0 {
			t.Errorf("another person lists %d sessions", n)
		}
		if list := w.mustRun("", "user", "list"); !strings.Contains(list, w.email) || !strings.Contains(list, "other@example.org") {
			t.Errorf("user list:\n%s", list)
		}
		w.mustRun("", "user", "disable", "other@example.org")
		other.get("/api/v1/sessions").problem(t, http.StatusUnauthorized, "")

		link := strings.TrimSpace(w.mustRun("", "user", "link", w.email, "--addr", s.addr))
		u, err := url.Parse(link)
		if err != nil || u.Host != s.addr {
			t.Fatalf("the link is %q", link)
		}
		b := w.browser(s)
		b.visit(u.RequestURI())
		b.submit("/login", nil)
		if !strings.Contains(b.visit("/sessions/"+id), "form") {
			t.Error("the link signs nobody in")
		}
		if o := w.run("short\n", "user", "add", "third@example.org", "--password-stdin"); o.code != 1 || !strings.Contains(o.err, "8 characters") {
			t.Errorf("a short password: exit %d: %s", o.code, o.err)
		}
		if o := w.run("", "user", "add", w.email); o.code != 1 {
			t.Errorf("the same address twice: exit %d: %s", o.code, o.err)
		}
		s.decide(per, "reject", "").want(t, http.StatusOK)
		s.untilQuiet(id, "stopped", "waiting", "failed", "ready")
	})
}

// migrate works on a new database, on one that is up to date, and beside a
// server; it never touches one that is served and of another schema.
func TestE2E_Migrate(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := storetest.Empty(t, name)
			args := []string{"--database", db.URL, "--state", filepath.Join(dir, "state")}
			for range 2 {
				if o := execute(t, dir, "", nil, append([]string{"migrate"}, args...)...); o.code != 0 || !strings.Contains(o.out, "up to date") {
					t.Fatalf("exit %d: %s%s", o.code, o.out, o.err)
				}
			}
			s := stranger(t, dir, append([]string{"serve"}, args...)...)
			if o := execute(t, dir, "", nil, append([]string{"migrate"}, args...)...); o.code != 0 {
				t.Errorf("beside a server: exit %d: %s", o.code, o.err)
			}
			raw := db.SQL(t)
			db.MustExec(t, raw, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, ?)", 9999, true)
			if o := execute(t, dir, "", nil, append([]string{"user", "list"}, args...)...); o.code != 1 {
				t.Errorf("another schema: exit %d, want 1: %s%s", o.code, o.out, o.err)
			}
			s.kill9()
		})
	}
}

// verify and export work beside a server that works; verify writes nothing and
// finds what is off.
// proves JRN-4
func TestE2E_VerifyAndExport(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		done := s.mission(steps("echo said"))
		s.untilQuiet(done, "ready")
		gate, up := w.gate("gate"), w.gate("up")
		busy := s.mission(steps(up.Tell("up") + "; " + gate.Read()))
		up.Wait()
		db := w.sql()
		before := w.db.RowCounts(t, db)
		if out := w.mustRun("", "verify"); !strings.Contains(out, "2 sessions") || !strings.Contains(out, "the journal is whole") {
			t.Errorf("verify says\n%s", out)
		}
		exported := w.mustRun("", "export", done)
		if after := w.db.RowCounts(t, db); !maps.Equal(before, after) {
			t.Errorf("verify and export wrote: %v, before %v", after, before)
		}
		for _, e := range s.events(done) {
			if !strings.Contains(exported, e.ID) {
				t.Errorf("the export lacks event %d", e.Seq)
			}
		}
		if web := string(s.get("/api/v1/sessions/"+done+"/export").want(t, http.StatusOK).body); !json.Valid([]byte(exported)) || web != exported {
			t.Errorf("the export by the command line differs from the one by the API:\n%s\n%s", tail(exported, 500), tail(web, 500))
		}

		w.db.MustExec(t, db, "UPDATE call SET state = 'failed' WHERE session_id = ?", done)
		o := w.run("", "verify")
		if o.code != 1 || !strings.Contains(o.out, "damaged") || !strings.Contains(o.out, done) {
			t.Errorf("verify of a damaged journal: exit %d\n%s%s", o.code, o.out, o.err)
		}
		w.db.MustExec(t, db, "UPDATE call SET state = 'succeeded' WHERE session_id = ?", done)
		gate.Open()
		s.untilQuiet(busy, "ready")
		if o := w.run("", "export", "ses_00000000000000000000000000000000"); o.code != 1 {
			t.Errorf("the export of nothing: exit %d: %s", o.code, o.err)
		}
	})
}

// A server that is started while the disk is full isn't, and says so: nobody wanted
// anything recorded. Once there is room it starts, and has all that was accepted.
// proves ADM-9
func TestE2E_AStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve(flags(quick...))
	id := s.mission(steps("echo one"))
	s.untilQuiet(id, "ready")
	before := s.events(id)
	s.kill9() // which leaves its log beside the file, longer than the index of it
	wal, err := os.Stat(w.db.URL + "-wal")
	if err != nil || wal.Size() < 64<<10 {
		t.Fatalf("the log is %v, %v", wal, err)
	}
	for what, blocks := range map[string]int64{"nothing fits": 1, "the log may not grow": wal.Size() / 512} {
		s.through = []string{"sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$0" "$@"`, blocks)}
		s.launch()
		if code := s.exit(); code != 1 {
			t.Errorf("%s: exit %d", what, code)
		}
		if said := s.err.String(); !strings.Contains(said, "the disk is full, so the server was not started. Nothing is lost") || !strings.Contains(said, "then start again") || strings.Contains(said, "recorded") {
			t.Errorf("%s: it says\n%s", what, tail(said, 2000))
		}
	}
	s.through = nil
	s.start()
	if after := s.events(id); len(after) != len(before) {
		t.Errorf("%d events, %d before", len(after), len(before))
	}
}
