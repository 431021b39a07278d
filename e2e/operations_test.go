package e2e

import (
	"context"
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
