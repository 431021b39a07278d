package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/store/storetest"
)

// A member that is null is as one that isn't there, in the body of every call that
// takes one: an optional one is left out, one that is needed is missed. In a list
// nothing is null.
// proves ADM-2
func TestJSON_NullIsAbsent(t *testing.T) {
	t.Parallel()
	send := func(path, members string) answer {
		w := newWorld(t, storetest.New(t, "sqlite")) // another one each time: what was answered isn't open any more
		return w.do(t, post, "/api/v1"+w.things(t, w.alice).fill(path), as(w.alice), key("n"), sendsJSON("{"+members+"}"))
	}
	typeOf := func(a answer) string { // of a problem, else ""
		var problem struct{ Type string }
		_ = json.Unmarshal(a.body, &problem)
		return problem.Type
	}
	tested := map[string]bool{}
	for _, tt := range []struct{ path, needed, optional string }{
		{"/sessions", `"workspace":"/srv/x" "agent":"runbook"`, `title preset rules policy limits prompt settings`},
		{"/sessions", `"workspace":"/srv/x" "agent":"runbook" "policy":{"retry_unknown_attempts":null}`, ``},
		{"/sessions", `"workspace":"/srv/x" "agent":"runbook" "limits":{"steps":null,"wall_s":null,"tokens":null,"cost_usd":null}`, ``},
		{"/sessions/:id/prompts", `"text":"hi"`, `delivery`},
		{"/sessions/:id/interruption", ``, `mode`},
		{"/sessions/:id/continuation", ``, `limits anew`},
		{"/sessions/:id/continuation", `"limits":{"steps":null}`, ``},
		{"/sessions/:id/settings", `"settings":[{"id":"m","value":"x"}]`, ``},
		{"/sessions/:id/archive", ``, ``},
		{"/permissions/:id/decision", `"reply":"reject"`, `message scope patterns digest`},
		{"/calls/:id/resolution", `"outcome":"cannot_tell" "then":"stay"`, `evidence`},
		{"/attempts/:id/resolution", `"outcome":"abandon" "then":"stay"`, `evidence`},
	} {
		tested[tt.path] = true
		needed := strings.Fields(tt.needed)
		bare := send(tt.path, strings.Join(needed, ","))
		for _, name := range strings.Fields(tt.optional) {
			got := send(tt.path, strings.Join(append(needed[:len(needed):len(needed)], fmt.Sprintf("%q:null", name)), ","))
			if got.status != bare.status || typeOf(got) != typeOf(bare) {
				t.Errorf("%s: %s null: %d %s\nwithout it: %d %s", tt.path, name, got.status, got.body, bare.status, bare.body)
			}
		}
		for i, member := range needed {
			name, _, _ := strings.Cut(member, ":")
			others := append(append([]string{}, needed[:i]...), needed[i+1:]...)
			without, null := send(tt.path, strings.Join(others, ",")), send(tt.path, strings.Join(append(others, name+":null"), ","))
			if null.status != without.status || typeOf(null) != typeOf(without) {
				t.Errorf("%s: %s null: %d %s\nwithout it: %d %s", tt.path, name, null.status, null.body, without.status, without.body)
			}
		}
	}
	for _, r := range newWorld(t, storetest.New(t, "sqlite")).srv.routes() {
		if path, api := strings.CutPrefix(r.path, "/api/v1"); api && r.method != get && r.method != "DELETE" && !tested[path] {
			t.Errorf("%s %s isn't in the table", r.method, r.path)
		}
	}
	for path, members := range map[string]string{
		"/sessions":                 `"workspace":"/srv/x","agent":"runbook","rules":[null]`,
		"/permissions/:id/decision": `"reply":"reject","patterns":[null]`,
		"/sessions/:id/settings":    `"settings":[{"id":"m","value":null}]`,
	} {
		send(path, members).wantProblem(t, 422, "wrong-type")
	}
}
