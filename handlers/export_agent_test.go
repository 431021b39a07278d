package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// An export has what an agent did by itself as it was described the last time, and
// a message that was cut off, marked so.
func TestExport_AgentsOwn(t *testing.T) {
	// proves ATT-4
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		att, edit, run := attempt(t, w, r), store.NewID("call"), store.NewID("call")
		own := func(id, tool, input string) *journal.CallProposed {
			b := r.Propose(id, journal.EffectEffect)
			b.AttemptID, b.Tool, b.Input = &att, tool, []byte(input)
			return b
		}
		by := journal.AllowedBy{Type: journal.AllowedByAgent, Text: "the agent asked nobody"}
		storetest.MustAppend(t, w.store, r.Claim, "",
			&journal.AgentOpened{ProcessID: "prc_1", AgentSessionID: "s1", How: journal.AgentNew, Name: "opencode", Version: "1.2.3"},
			own(edit, "edit", `{"title":"edit","kind":"edit"}`),
			&journal.CallDescribed{CallID: edit, InputSHA256: "s", Input: []byte(`{"title":"Edit a.txt","kind":"edit","diffs":[{"path":"a.txt","old":"before\n","new":"after\n"}]}`)},
			&journal.CallDispatched{CallID: edit, N: 1, AllowedBy: by}, storetest.Settle(edit, journal.CallSucceeded),
			own(run, "execute", `{"title":"go test","kind":"execute","input":{"command":"go test","description":"all"}}`),
			&journal.AgentOptions{ProcessID: "prc_1", Options: offered()},
			&journal.MessageCompleted{MessageID: "msg_0", Role: journal.RoleServer, Part: journal.PartNote, Text: journal.T("Go on with what was asked."), Told: journal.ToldGoOn},
			say("msg_1", "half "), say("msg_1", "a thought"))
		if _, _, err := w.store.ChooseSettings(t.Context(), r.Owner, r.Session, "", []journal.Setting{{ID: "model", Value: "large"}}); err != nil {
			t.Fatal(err)
		}
		storetest.MustAppend(t, w.store, r.Claim, journal.PhaseSafe, storetest.Settle(run, journal.CallCancelled), &journal.AttemptUnknown{AttemptID: att})
		_, body := w.markdown(t, r.Session)
		for _, want := range []string{
			"Allowed by `agent`: `the agent asked nobody`", "What it does: `Edit a.txt`\n\nChange:\n\n", "- before\n+ after\n", "Command:\n\n", "go test", "The agent says, `description`: `all`",
			"told to the agent.", "Go on with what was asked.", "It is not complete.", "half a thought", "Message `" + att + "` to the agent: entry ", "`agent.opened`", "`agent.options`",
			"The agent’s setting `Model`: `Small <1>`", "of the setting `model`: `large`",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%q isn't in it:\n%s", want, body)
			}
		}
		a := w.do(t, get, "/sessions/"+r.Session+"/export.json", browser(w.alice))
		if got := string(a.body); a.status != http.StatusOK || !strings.Contains(got[strings.Index(got, `"calls":`):], `"title":"Edit a.txt"`) {
			t.Errorf("the JSON export has the call as it was proposed: %s", got[strings.Index(got, `"calls":`):])
		}
	})
}
