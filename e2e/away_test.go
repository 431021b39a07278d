package e2e

import (
	"context"
	"database/sql"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/store/storetest"
)

// fileLimit bounds the size of the files that a server may write: its disk is
// full from there on. What it has started before is not concerned.
func (s *server) fileLimit(bytes uint64) {
	s.w.t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(s.pid(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		s.w.t.Fatal(err)
	}
}

// shut takes a Postgres journal away: no connection is left, and none is let in.
func (w *world) shut() (open func()) {
	w.t.Helper()
	admin, err := sql.Open("postgres", os.Getenv(storetest.PostgresURL))
	if err != nil {
		w.t.Fatal(err)
	}
	u, err := url.Parse(w.db.URL)
	if err != nil {
		w.t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/")
	must := func(query string) {
		w.t.Helper()
		if _, err := admin.ExecContext(context.WithoutCancel(w.t.Context()), query); err != nil {
			w.t.Fatalf("%s: %v", query, err)
		}
	}
	w.t.Cleanup(func() { // whatever happens: others use this database later
		must("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true")
		_ = admin.Close()
	})
	must("ALTER DATABASE " + name + " ALLOW_CONNECTIONS false")
	must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'")
	return func() { must("ALTER DATABASE " + name + " ALLOW_CONNECTIONS true") }
}

// The journal can't be written while a command runs: admission says so, the
// work waits, past its lease too, and all goes on once it can.
// proves ADM-9 COO-10 LEA-3
func TestE2E_TheJournalCannotBeWritten(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps("echo before; "+up.Tell("up")+"; "+gate.Read()+"; echo after; "+effect("running"), effect("next")))
		up.Wait()
		s.until(id, "its first words are in", func(j journal) bool { return j.output("") == "before\n" })
		s.prompt(id, steps(effect("queued")), "queue")
		before := s.events(id)
		b := w.browser(s)
		b.signIn(w.email)
		saysFull := func() bool { return b.doc.Find("#journal-full:not([hidden])").Length() == 1 }

		var restore func()
		if w.db.Name == "sqlite" {
			s.fileLimit(1)
			restore = func() { s.fileLimit(unix.RLIM_INFINITY) }
		} else {
			restore = w.shut()
		}
		key, path := newKey(), "/api/v1/sessions/"+id+"/prompts"
		body := map[string]string{"text": steps(effect("refused first")), "delivery": "queue"}
		refused := s.post(path, body, "Idempotency-Key", key)
		refused.problem(t, http.StatusServiceUnavailable, "")
		if refused.header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
		s.post("/api/v1/sessions", w.newSession("x"), "Idempotency-Key", newKey()).problem(t, http.StatusServiceUnavailable, "")
		gate.Open() // the command works on, and its words must wait
		eventually(t, "the command has acted", func() bool { return w.effects()["running"] == 1 })
		if w.db.Name == "sqlite" {
			b.visitUntil("/sessions/"+id, "its page says that the disk is full", saysFull)
			if needs := b.doc.Find("#reading-needs").Text(); strings.Contains(needs, "You can leave") || !strings.Contains(needs, "the disk is full") {
				t.Errorf("what it needs: %q", needs)
			}
			s.get("/api/v1/receipts/"+key).problem(t, http.StatusNotFound, "") // reading works
			w.untilLeaseExpired(t, id)
			if j := s.events(id); len(j) != len(before) {
				t.Errorf("%d events were written to a full disk", len(j)-len(before))
			}
			if state := s.session(id).State; state != "unconfirmed" && state != "running" {
				t.Errorf("it is %s; its work waits", state)
			}
		}
		w.wantEffect("next", 0)
		if !s.running() {
			t.Fatalf("the server has died:\n%s", tail(s.err.String(), 4000))
		}

		restore()
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		if b.visit("/sessions/" + id); saysFull() {
			t.Error("its page says that the disk is full, which it isn't any more")
		}
		j := s.events(id)
		wantCounts(t, j, map[string]int{"step.recovered": 0, "call.unknown": 0, "prompt.admitted": 2})
		if out := j.output(""); out != "before\nafter\n" {
			t.Errorf("output %q: nothing is lost, nothing doubled", out)
		}
		if r := s.promptAs(key, id, body["text"], "queue"); r.Replayed { // the same key again settles it
			t.Errorf("what was refused is a replay: %+v", r)
		}
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		for _, name := range []string{"running", "next", "queued", "refused first"} {
			w.wantEffect(name, 1)
		}
	})
}
