package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// However an agent spells what it would change or fetch, a rule that denies it holds, and
// what nobody can tell is asked with the reason, whatever rules allow.
//
// proves PER-1 PER-2
func TestACP_HoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	const change = `"kind":"edit","content":[{"type":"diff","path":"README.md","oldText":"tge","newText":"the"}],"rawInput":{"patch":"`
	for name, c := range map[string]struct{ call, asks, why string }{
		"a marker that is padded":         {change + `*** Begin Patch\n *** Add File: .github/w.yml\n+x"}`, "", ""},
		"a patch in an unknown dialect":   {change + `*** Begin Patch\n*** Frob File: x"}`, "edit: a part of its patch: *** Frob File: x", "can't all be told"},
		"a host in capitals":              {`"kind":"fetch","rawInput":{"url":"https://EVIL.com.:443/"}`, "", ""},
		"a host that may be another":      {`"kind":"fetch","rawInput":{"url":"https://good.com\\x/"}`, "web: good.com", "several ways"},
		"a path that is padded":           {`"kind":"delete","rawInput":{"path":"\t.github/w.yml"}`, "", ""},
		"a path with a variable":          {`"kind":"delete","rawInput":{"path":"$HOME/x"}`, "edit: $HOME/x", "another file"},
		"a pattern that may be of denied": {`"kind":"delete","rawInput":{"path":"[.]github/w.yml"}`, "edit: [.]github/w.yml", "several files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				request := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"x",` + c.call + `},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}`
				_, with := scripted(t, `hear; cat <<'END'
`+request+`
END
hear; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, func(n *store.NewSession) {
					n.Preset = "workspace"
					n.Rules = []journal.Rule{{Permission: "web", Pattern: "*", Action: "allow"}, {Permission: "web", Pattern: "evil.com", Action: "deny"}, {Permission: "edit", Pattern: "*", Action: "allow"}, {Permission: "edit", Pattern: ".github/*", Action: "deny"}}
				})
				v := b.until(id, "it has asked, or is done", func(v store.Session) bool { return len(v.State.Pending) > 0 || v.State.Base == journal.StateReady })
				var asked []string
				for _, r := range b.pending(id) {
					asked = append(asked, r.Permission+": "+strings.Join(r.Resources, ", "))
					if strings.HasPrefix(c.asks, r.Permission) && !strings.Contains(string(r.Metadata), c.why) {
						t.Errorf("it says %s, want %q", r.Metadata, c.why)
					}
				}
				if got := strings.Join(asked, "; "); (got == "") != (c.asks == "") || !strings.Contains(got, c.asks) {
					t.Errorf("it asks %q, want %q", got, c.asks)
				}
				if c.asks == "" && storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched) > 0 {
					t.Errorf("it was let run: %+v", v.State)
				}
			})
		})
	}
}
