package e2e

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	domain "holdfast/journal"

	"holdfast/e2e/power"
	seeding "holdfast/e2e/seed"
	"holdfast/store/storetest"
)

// A server on a folder that was filled shows every state at once, each in the
// session that is named after it, also after it was lost and started again.
func TestSeed_EveryStateAtOnce(t *testing.T) {
	t.Parallel()
	for _, database := range storetest.Databases() {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "seed")
			o := seeding.Options{Dir: dir, Binary: binary}
			if database == "postgres" {
				o.Database = storetest.New(t, database).URL
			}
			r, err := seeding.Fill(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			verified := func(when string) {
				if o := execute(t, dir, "", nil, "verify", "--state", r.State, "--database", r.Database); o.code != 0 {
					t.Errorf("verify %s: exit %d\n%s%s", when, o.code, o.out, o.err)
				}
			}
			verified("of the folder as it was filled")
			wantNobodyIn(t, r.Workspaces)
			for _, when := range []string{"once", "after a loss"} {
				s := stranger(t, dir, r.Serve()...)
				s.token = r.Token
				wantSeeded(t, s, r, when)
				verified("beside a server, " + when)
				s.kill9()
				if err := power.Cut(r.State); err != nil {
					t.Fatal(err)
				}
				wantNobodyIn(t, r.Workspaces)
			}
			s := stranger(t, dir, r.Serve()...)
			s.token = r.Token
			wantSpecial(t, s, r)
			b := newBrowser(t, s.base)
			b.visit("/login")
			b.submit("/login", map[string]string{"email": r.Email, "password": r.Password})
			if !strings.Contains(b.visit("/sessions/"+r.ID("unconfirmed")), "Not confirmed") {
				t.Errorf("the page says\n%s", tail(b.text, 2000))
			}
		})
	}
}

// wantNobodyIn waits until no process works in a folder any more.
func wantNobodyIn(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "nobody works in "+dir, func() bool {
		links, err := filepath.Glob("/proc/[0-9]*/cwd")
		if err != nil || len(links) == 0 {
			t.Fatalf("look for processes: %d, %v", len(links), err)
		}
		return !slices.ContainsFunc(links, func(link string) bool {
			at, err := os.Readlink(link) // one that has ended can't be read
			return err == nil && (at == dir || strings.HasPrefix(at, dir+"/"))
		})
	})
}

// wantSeeded fails unless the API lists each session in its state, and all states.
func wantSeeded(t *testing.T, s *server, r *seeding.Result, when string) {
	t.Helper()
	var got map[string]string
	want := map[string]string{}
	for _, one := range r.Sessions {
		want[one.Name] = string(one.State)
		if one.Name != string(one.State) && !strings.HasPrefix(one.Name, string(one.State)+"_") {
			t.Errorf("the session %s is to be %s", one.Name, one.State)
		}
	}
	defer func() {
		if t.Failed() {
			t.Logf("the sessions are\n%v\nand should be\n%v", got, want)
		}
	}()
	eventually(t, "each session is in its state "+when, func() bool {
		got = map[string]string{}
		for _, item := range decode[items[session]](t, s.get("/api/v1/sessions?limit=100").want(t, http.StatusOK)).Items {
			for _, one := range r.Sessions {
				if one.ID == item.ID {
					got[one.Name] = item.State
				}
			}
		}
		return maps.Equal(got, want) || t.Failed()
	})
	shown := slices.Sorted(maps.Values(got))
	for _, state := range domain.States() {
		if !slices.Contains(shown, string(state)) {
			t.Errorf("no session is %s %s", state, when)
		}
	}
}

// wantSpecial fails unless the sessions have what they are named after.
func wantSpecial(t *testing.T, s *server, r *seeding.Result) {
	t.Helper()
	for name, n := range map[string]int{"waiting": 1, "waiting_two": 2} {
		if got := s.session(r.ID(name)).PendingPermissions; got != n {
			t.Errorf("%s has %d requests, want %d", name, got, n)
		}
	}
	if got := s.session(r.ID("stopped")).PendingPrompts; got != 2 {
		t.Errorf("stopped holds %d messages, want 2", got)
	}
	if j := s.events(r.ID("idle")); j.count("prompt.withdrawn") != 1 {
		t.Errorf("idle:\n%s", j.dump())
	}
	for name, out := range map[string]string{
		"uncertain": "", "uncertain_output": "deploying part 3 of 9\n", "running_elsewhere": "deploying part 1 of 3\n",
		"ready_output": "\x1b[31mred\x1b[0m", "ready_reconciled": "transferring\n",
	} {
		j := s.events(r.ID(name))
		if !strings.Contains(j.output(""), out) || strings.HasPrefix(name, "uncertain") && (j.count("call.unknown") != 1 || j.count("step.recovered") != 1) {
			t.Errorf("%s:\n%s", name, j.dump())
		}
	}
	if j := s.events(r.ID("waiting_bidi")); !strings.Contains(j[1].str("text"), "\u202e") {
		t.Errorf("waiting_bidi:\n%s", j.dump())
	}
	large := s.calls(r.ID("ready_large_output"))
	if a := s.get("/api/v1/calls/" + large[0].ID + "/output?offset=0&limit=10"); a.header.Get("X-Total-Bytes") != "10485760" {
		t.Errorf("the large output has %s bytes", a.header.Get("X-Total-Bytes"))
	}
}

// A folder that holds anything is refused, and nothing in it is touched.
func TestSeed_RefusesWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := seeding.Fill(t.Context(), seeding.Options{Dir: filepath.Dir(dir), Binary: binary}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v", err)
	}
}
