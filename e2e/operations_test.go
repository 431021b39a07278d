package e2e

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The Markdown of a session by the command line, beside a running server.
func TestE2E_ExportMarkdown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission("# Say it\n\n" + steps("printf 'said: %s\\n' '```' '# not a heading'"))
		s.untilQuiet(id, "ready")
		db := w.sql()
		before := w.db.RowCounts(t, db)
		md := w.mustRun("", "export", id, "--format", "md")
		if after := w.db.RowCounts(t, db); !maps.Equal(before, after) {
			t.Errorf("export wrote: %v, before %v", after, before)
		}
		j := s.events(id)
		if !strings.HasPrefix(md, "---\nsession: \""+id+"\"\n") || !strings.Contains(md, fmt.Sprintf("\nlast_entry: %d\n", j.last())) {
			t.Errorf("it begins\n%.600s", md)
		}
		for _, want := range []string{"\n## Mission\n\n````text\n# Say it\n", "None. Every operation has a recorded result.", "\n````text\nsaid: ```\nsaid: # not a heading\n````\n", fmt.Sprintf("\n%d. `%s`", j.last(), j[len(j)-1].Kind)} {
			if !strings.Contains(md, want) {
				t.Errorf("%q isn't in it:\n%s", want, tail(md, 6000))
			}
		}
		if o := w.run("", "export", id, "--format", "pdf"); o.code != 2 {
			t.Errorf("another format: exit %d: %s", o.code, o.err)
		}
	})
}

// A copy that is made while prompts are admitted is whole, and a server can be
// started on it. Postgres has tools of its own, which are named.
func TestE2E_Backup(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		file := filepath.Join(w.dir, "my copy.db")
		if w.db.Name == "postgres" {
			o := w.run("", "backup", file)
			if o.code != 2 || !strings.Contains(o.err, "pg_dump --format=custom --no-owner --file='"+file+"' --dbname='postgres://") || strings.Contains(o.err, passwordOf(w.db.URL)) {
				t.Errorf("exit %d: %s", o.code, o.err)
			}
			return
		}
		s := w.serve(flags("--rate", "1000"))
		id := s.mission("")
		busy := admitAllTheTime(s, id)
		last := s.prompt(id, steps(effect("once")), "queue")
		o := w.run("", "backup", file)
		busy()
		if o.code != 0 || !strings.Contains(o.out, "holdfast verify --database '"+file+"'") {
			t.Fatalf("exit %d: %s%s", o.code, o.out, o.err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the copy is %v, %v", info, err)
		}
		if o := w.run("", "backup", file); o.code != 2 || !strings.Contains(o.err, "is there already") {
			t.Errorf("over a file that is there: exit %d: %s", o.code, o.err)
		}
		restored := []string{"--database", file, "--state", w.state("restored")}
		if o := execute(t, w.dir, "", nil, append([]string{"verify"}, restored...)...); o.code != 0 {
			t.Errorf("verify of the copy: exit %d\n%s%s", o.code, o.out, o.err)
		}
		if o := execute(t, w.dir, "", nil, append([]string{"export", id}, restored...)...); !strings.Contains(o.out, last.ID) {
			t.Errorf("what was acknowledged before the copy began isn't in it: exit %d %s", o.code, o.err)
		}
		other := stranger(t, w.dir, append([]string{"serve", "--workspaces", w.work}, restored...)...)
		other.token = w.token
		if got := other.session(id); got.ID != id {
			t.Errorf("a server on the copy gives %+v", got)
		}
	})
}

// passwordOf gives the password in a database's address.
func passwordOf(address string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(address, "postgres://"), ":")
	password, _, _ := strings.Cut(rest, "@")
	return password
}

// admitAllTheTime submits prompts to a session, and withdraws them, until the
// function that it gives is called. It returns once the first were taken.
func admitAllTheTime(s *server, id string) (stop func()) {
	ctx, cancel := context.WithCancel(s.w.t.Context())
	var callers sync.WaitGroup
	began := make(chan struct{}, 3)
	for range cap(began) {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for first := true; ctx.Err() == nil; first = false {
				a, err := s.do(s.w.t.Context(), http.MethodPost, "/api/v1/sessions/"+id+"/prompts", map[string]string{"text": "nothing to run", "delivery": "queue"}, "Idempotency-Key", newKey())
				if err != nil || a.status != http.StatusAccepted && a.status != http.StatusConflict && a.status != http.StatusTooManyRequests {
					s.w.t.Errorf("a prompt was answered %d, %v", a.status, err)
					cancel()
				}
				if first {
					began <- struct{}{}
				}
			}
		}()
	}
	for range cap(began) {
		<-began
	}
	return func() { cancel(); callers.Wait() }
}

// A backup that is killed leaves nothing under the name that it was to make.
func TestE2E_BackupKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	id := s.mission(steps("yes more | head -c 9000000", "yes less | head -c 9000000"))
	s.untilQuiet(id, "ready")
	killed := 0
	for try := 0; try < 20 && killed < 2; try++ {
		file := filepath.Join(w.dir, fmt.Sprintf("copy-%d.db", try))
		cmd := exec.Command(binary, "backup", file, "--database", w.db.URL, "--state", w.state("1"))
		cmd.Dir, cmd.Env = w.dir, environment(w.dir, nil)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		grows(t, filepath.Join(w.dir, "."+filepath.Base(file)+".*.part"), file)
		_ = cmd.Process.Kill() // it may be done already
		_ = cmd.Wait()
		if _, err := os.Lstat(file); err != nil {
			killed++
			continue
		}
		// It was faster than we were: then it is whole.
		if o := execute(t, w.dir, "", nil, "verify", "--database", file, "--state", w.state("1")); o.code != 0 {
			t.Errorf("half a copy has the name of a whole one: exit %d\n%s%s", o.code, o.out, o.err)
		}
	}
	if killed == 0 {
		t.Error("none of the backups was killed in its midst")
	}
	w.mustRun("", "backup", filepath.Join(w.dir, "after.db"))
}

// grows waits until a file that fits the pattern has bytes in it, or another is there.
func grows(t *testing.T, pattern, other string) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	late := time.After(patience)
	for {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(found, other) {
			if info, err := os.Stat(name); err == nil && info.Size() > 0 {
				return
			}
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("waited in vain for %s", pattern)
		}
	}
}

// checked is a table of the doctor's, by check.
type checked map[string][]string

// doctor runs the doctor and reads what it prints.
func (w *world) doctor(env []string, args ...string) (code int, table checked) {
	w.t.Helper()
	o := execute(w.t, w.dir, "", env, append([]string{"doctor", "--database", w.db.URL, "--state", w.state("1"), "--workspaces", w.work}, args...)...)
	return o.code, readChecks(w.t, o)
}

func readChecks(t *testing.T, o outcome) checked {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(o.out), "\n")
	table := checked{}
	check, n := "", 0
	for _, line := range lines[:len(lines)-1] {
		mark, text := strings.TrimSpace(line[:9]), line[9:]
		if len([]rune(line)) > 80 && strings.Contains(text, " ") {
			t.Errorf("%d characters in the line %q", len([]rune(line)), line)
		}
		if mark == "" {
			if check == "" {
				t.Fatalf("the doctor prints %q\n%s", line, o.err)
			}
			of := table[check]
			of[len(of)-1] += " " + text
			continue
		}
		var found string
		check, found, _ = strings.Cut(text, ":") // a long path has a line for itself
		table[check] = append(table[check], mark+":"+found)
		n++
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, fmt.Sprintf("%d checks: ", n)) {
		t.Errorf("the doctor closes with %q after %d checks", last, n)
	}
	return table
}

// want fails unless a check came out so, with these words.
func (c checked) want(t *testing.T, check, health, words string) {
	t.Helper()
	for _, got := range c[check] {
		if strings.HasPrefix(got, health+": ") && strings.Contains(got, words) {
			return
		}
	}
	t.Errorf("%s is %q, want %s with %q", check, c[check], health, words)
}

// The doctor beside a server: all is well, and it writes nothing.
func TestE2E_Doctor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		s.untilQuiet(s.mission(steps("echo hi")), "ready")
		db := w.sql()
		before := w.db.RowCounts(t, db)
		code, table := w.doctor(nil)
		if code != 0 {
			t.Errorf("exit %d: %v", code, table)
		}
		if after := w.db.RowCounts(t, db); !maps.Equal(before, after) {
			t.Errorf("it wrote: %v, before %v", after, before)
		}
		table.want(t, "state folder", "ok", "0700")
		table.want(t, "server", "ok", fmt.Sprintf("served by pid %d on ", s.pid()))
		table.want(t, "clock", "ok", "the host's says 20")
		table.want(t, "database", "ok", "schema ")
		table.want(t, "address", "ok", "127.0.0.1:8080, without --public-url")
		table.want(t, "sign-in", "ok", "1 user")
		table.want(t, "shims", "ok", "no command runs")
		table.want(t, "workspaces", "ok", w.work)
		table.want(t, "sessions' folders", "ok", "1 of 1 ")
		table.want(t, "agent runbook", "ok", "/sh")
		if w.db.Name == "sqlite" {
			table.want(t, "durability", "ok", "journal_mode=wal, synchronous=FULL")
			table.want(t, "integrity", "ok", "quick_check")
			table.want(t, "journal's server", "ok", fmt.Sprintf("served by pid %d on ", s.pid()))
		} else {
			table.want(t, "durability", "ok", "synchronous_commit=on, fsync=on")
			table.want(t, "wake-ups", "ok", "LISTEN")
			table.want(t, "database's clock", "ok", "from this host's")
		}

		// After one that was killed it leaves everything as it is, for who recovers; after one that left, too.
		if err := db.Close(); err != nil { // else the doctor wouldn't be the last to close the file
			t.Fatal(err)
		}
		for _, end := range []func(){s.kill9, func() { s.restart(); s.sigterm() }} {
			end()
			files := snapshot(t, w.state("1"), filepath.Dir(w.db.URL))
			if code, table = w.doctor(nil); code != 0 {
				t.Errorf("without a server: exit %d: %v", code, table)
			}
			table.want(t, "server", "ok", "not served; the last was pid")
			table.want(t, "durability", "ok", map[string]string{"sqlite": "journal_mode=wal", "postgres": "fsync=on"}[w.db.Name])
			if after := snapshot(t, w.state("1"), filepath.Dir(w.db.URL)); !maps.Equal(files, after) {
				t.Errorf("it changed files:\n%v\n%v", files, after)
			}
		}

		db = w.sql()
		mark := filepath.Join(w.work, ".holdfast-workspace")
		w.mustRun("", "user", "disable", w.email)
		if err := os.Rename(mark, mark+".away"); err != nil {
			t.Fatal(err)
		}
		code, table = w.doctor(nil, "--addr", "0.0.0.0:8080", "--public-url", "http://holdfast.example")
		if code != 0 {
			t.Errorf("with warnings: exit %d: %v", code, table)
		}
		table.want(t, "sign-in", "warning", "nobody can sign in")
		table.want(t, "address", "warning", "without https")
		table.want(t, "sessions' folder", "warning", "isn't the one in which this session was made")
		w.db.MustExec(t, db, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, ?)", 9999, true)
		code, table = w.doctor([]string{"PATH=/nowhere"}, "--workspaces", "/nowhere")
		if code != 1 {
			t.Errorf("with what is wrong: exit %d: %v", code, table)
		}
		table.want(t, "database", "wrong", "another schema version")
		table.want(t, "workspaces", "wrong", "/nowhere")
		table.want(t, "agent runbook", "wrong", "sh isn't in PATH (/nowhere)")
		table.want(t, "agent runbook", "warning", "bash isn't in PATH (/nowhere)")
		w.db.MustExec(t, db, "DELETE FROM goose_db_version WHERE version_id = ?", 9999)
	})
}

// The doctor looks at the shims of what the journal has as running, and writes nothing
// there either.
func TestE2E_DoctorSeesShims(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		up, gate := w.gate("up"), w.gate("gate")
		id := s.mission(steps(up.Tell("up") + "; " + gate.Read()))
		up.Wait()
		shims := s.shims()
		if len(shims) != 1 {
			t.Fatalf("the shims %v", shims)
		}
		_, table := w.doctor(nil)
		table.want(t, "shims", "ok", "1 command runs")
		table.want(t, "command", "ok", fmt.Sprintf("shim pid %d", shims[0]))
		s.kill9()
		_, table = w.doctor(nil)
		table.want(t, "command", "ok", fmt.Sprintf("session %s, ", id))
		s.killShims()
		_, table = w.doctor(nil)
		table.want(t, "shims", "ok", "no command runs; of 1 more the shim is gone")
		table.want(t, "command", "warning", "its shim is gone: its server, or the next start, concludes it")
		s.restart()
		s.untilQuiet(id, "uncertain")
		_, table = w.doctor(nil)
		table.want(t, "shims", "ok", "no command runs")
		if len(table["command"]) > 0 {
			t.Errorf("of what is concluded it says %q", table["command"])
		}
	})
}

// snapshot gives what the files of folders hold, but for SQLite's shared memory.
func snapshot(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() || strings.HasSuffix(e.Name(), "-shm") {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(b)
			out[e.Name()] = fmt.Sprintf("%d bytes, %x", len(b), sum[:4])
		}
	}
	return out
}

// What isn't there yet is a warning, and stays not there; what can't be used is wrong.
func TestE2E_DoctorOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	examine := func(args ...string) (int, checked) {
		o := execute(t, dir, "", nil, append([]string{"doctor"}, args...)...)
		return o.code, readChecks(t, o)
	}
	state := filepath.Join(dir, "state")
	code, table := examine("--state", state)
	table.want(t, "state folder", "warning", "isn't there yet")
	table.want(t, "database", "warning", "there is no journal at")
	if _, err := os.Stat(state); code != 0 || !os.IsNotExist(err) {
		t.Errorf("of nothing: exit %d, and the folder: %v", code, err)
	}

	s := stranger(t, dir, "serve", "--state", state)
	_, table = examine("--state", state)
	table.want(t, "sign-in", "warning", "0 users; a setup link waits")
	s.kill9()
	if err := os.Chmod(state, 0o755); err != nil {
		t.Fatal(err)
	}
	code, table = examine("--state", state)
	table.want(t, "state folder", "warning", "chmod 700")
	if code != 0 {
		t.Errorf("open to others: exit %d: %v", code, table)
	}

	// A file in which a page is overwritten, and one that is no database at all.
	db := filepath.Join(state, "holdfast.db")
	if o := execute(t, dir, "", nil, "backup", filepath.Join(dir, "copy.db"), "--database", db, "--state", state); o.code != 0 {
		t.Fatalf("backup: %s", o.err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "copy.db"))
	if err != nil {
		t.Fatal(err)
	}
	broken, nonsense := filepath.Join(dir, "broken.db"), filepath.Join(dir, "nonsense.db")
	copy(b[len(b)-4096:], strings.Repeat("\xff", 4096)) // the last page: an index, or a table
	if err := errors.Join(os.WriteFile(broken, b, 0o600), os.WriteFile(nonsense, []byte(strings.Repeat("nonsense ", 1000)), 0o600)); err != nil {
		t.Fatal(err)
	}
	_, table = examine("--state", state, "--database", filepath.Join(dir, "copy.db"))
	table.want(t, "durability", "warning", "journal_mode=delete")
	for file, check := range map[string]string{broken: "integrity", nonsense: "database"} {
		code, table = examine("--state", state, "--database", file)
		table.want(t, check, "wrong", "restore a backup")
		if code != 1 {
			t.Errorf("%s: exit %d", file, code)
		}
	}
	for _, address := range []string{"postgres://somebody:geheim1234@127.0.0.1:1/none?sslmode=disable", "postgres://somebody:geheim1234@127.0.0.1:port/none"} {
		o := execute(t, dir, "", nil, "doctor", "--state", state, "--database", address)
		readChecks(t, o).want(t, "database", "wrong", "address")
		if o.code != 1 || strings.Contains(o.out+o.err, "geheim1234") {
			t.Errorf("%s: exit %d\n%s%s", address, o.code, o.out, o.err)
		}
	}
	if o := execute(t, dir, "", nil, "doctor", "agent", "runbook"); o.code != 0 || !strings.Contains(o.out, "2 checks: 2 ok") {
		t.Errorf("the agent: exit %d\n%s%s", o.code, o.out, o.err)
	}
	if o := execute(t, dir, "", nil, "doctor", "agent", "nobody"); o.code != 2 || !strings.Contains(o.err, "runbook") {
		t.Errorf("no agent: exit %d\n%s%s", o.code, o.out, o.err)
	}
}
