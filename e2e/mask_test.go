package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// proves OWN-3 JRN-8 JRN-5
func TestE2E_ASecretNeverShows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const secret, named = "s3cr3t-välue-0123456789", "another-one-by-name"
		s := w.serve(env("E2E_TOKEN="+secret, "E2E_PLAIN="+named), flags("--secret-env", "E2E_PLAIN", "--log-level", "debug"))
		for name, text := range map[string]string{"secret": secret, "named": named} {
			if err := os.WriteFile(filepath.Join(w.work, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.script("bytewise", `n=1; size=$(wc -c < "$1")`, `while [ $n -le $size ]; do tail -c +$n "$1" | head -c 1; n=$((n+1)); done`)
		w.script("counted", "env | grep -c ^E2E_ || true")
		id := s.mission(steps(
			"echo begin; ./bytewise secret; echo; ./bytewise named >&2; echo end",
			// Across the edge of a piece of 4 KiB.
			"printf '%4085s' '' | tr ' ' x; cat secret; echo done",
			"./counted", // a command has none of the server's credentials
		))
		s.untilQuiet(id, "ready")
		s.prompt(id, "the token is "+secret+", and "+named+"\n"+steps("true"), "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		j := s.events(id)
		out := j.output("")
		for _, want := range []string{"begin\n[hidden]\n", "end\n", "xxx[hidden]done\n", "\n0\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("the output lacks %q: %q", want, tail(out, 300))
			}
		}
		b := w.browser(s)
		b.signIn(w.email)
		seen := map[string]string{
			"the page":   b.visit("/sessions/" + id),
			"the list":   b.visit("/"),
			"the export": string(s.get("/api/v1/sessions/"+id+"/export").want(t, http.StatusOK).body),
			"events":     string(s.get("/api/v1/sessions/"+id+"/events").want(t, http.StatusOK).body),
			"the log":    s.err.String(), "what it prints": s.out.String(),
		}
		for _, c := range s.calls(id) {
			seen["the output of "+c.ID] = string(s.get("/api/v1/calls/"+c.ID+"/output").want(t, http.StatusOK).body)
		}
		if w.db.Name == "sqlite" {
			s.kill9()
			for _, f := range []string{w.db.URL, w.db.URL + "-wal"} {
				raw, err := os.ReadFile(f)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				seen["the file "+filepath.Base(f)] = string(raw)
			}
		}
		for where, text := range seen {
			for _, hidden := range []string{secret, named} {
				if strings.Contains(text, hidden) {
					t.Errorf("%s shows %q", where, hidden)
				}
			}
		}
		if text := seen["the page"]; !strings.Contains(text, "[hidden]") {
			t.Error("the page doesn't show the session: nothing was proved of it")
		}
	})
}
