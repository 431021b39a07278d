package handlers

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What goes on when a server is restarted is listed for who it belongs to, with
// who follows it; of other people only how many.
//
// proves OWN-1 REC-10
func TestPages_Running(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		b := w.tab(t, w.alice)
		row := func(want ...string) {
			t.Helper()
			b.open("/running").page().want(http.StatusOK)
			got := b.find("running-row")
			for _, one := range want {
				if !strings.Contains(got, one) {
					t.Errorf("the row says %q, want %q", got, one)
				}
			}
		}
		b.open("/settings").page()
		if b.doc.Find(`[data-testid="running-link"]`).AttrOr("href", "") != "/running" {
			t.Error("the settings don't lead there")
		}
		b.open("/running").page().want(http.StatusOK, "None of your runbooks’ commands runs just now. As of", "When a runbook runs a command, it stands here until it has ended.", "none works just now")
		agent := w.start(t, w.alice, "go")
		att, own := store.NewID("att"), store.NewID("call")
		proposed := agent.propose(own, "make")
		proposed.AttemptID = &att
		storetest.MustAppend(t, w.store, agent.Claim, "", &journal.AgentStarted{ProcessID: "prc_1"}, &journal.AgentOpened{ProcessID: "prc_1"}, &journal.AttemptPrepared{AttemptID: att, TurnID: agent.Turn}, &journal.AttemptDispatched{AttemptID: att, ProcessID: "prc_1"}, proposed, &journal.CallDispatched{CallID: own, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule}})
		b.open("/running").page().want(http.StatusOK, "1 agent works now: Deploy the shop")
		b.open("/sessions/"+agent.Session).page().want(http.StatusOK, "A call of the agent’s is under way.")
		w.tab(t, w.mallory).open("/running").page().want(http.StatusOK, "none works just now")

		theirs := w.run(t, w.mallory)
		theirs.MustSpooled(t, w.store, journal.EffectEffect)
		b.open("/running").page().want(http.StatusOK, "None of your runbooks’ commands runs just now; of other people, one does.")
		if got := b.main(); strings.Contains(got, theirs.Session) || strings.Contains(got, "Try it") {
			t.Errorf("another's session is told: %s", got)
		}

		r := w.run(t, w.alice)
		call := r.MustSpooled(t, w.store, journal.EffectEffect)
		b.open("/running").page().want(http.StatusOK, "1 command runs, and one of other people.")
		row("Try it", "0 bytes", "Followed")
		if b.doc.Find(`[data-testid="running-row"] a[href="/calls/`+call+`"]`).Length() != 1 || b.doc.Find(`[data-testid="running-row"] a[href="/sessions/`+r.Session+`"]`).Length() != 1 {
			t.Error("the row leads neither to the call nor to the session")
		}

		r.MustAdopt(t, w.store, call)
		row("Waits for a server", "None is there. It needs none to go on, and its output is kept.")
		b.open("/sessions/"+r.Session).page().want(http.StatusOK, "No server follows it just now; its output is kept.", "A command ran on meanwhile, and was not interrupted by that.", "The server was restarted meanwhile; up to then nothing of it was interrupted or repeated.")
		b.open("/calls/"+call).page().want(http.StatusOK, "Still running, no result yet", "No server follows it just now; its output is kept.", "Found still running", "Ended at the latest")
		if err := w.store.SeeWorker(t.Context(), store.Worker{ID: "w1", StateFolderID: "fld_w1", Host: "build-1", Agents: []store.Agent{}}); err != nil {
			t.Fatal(err)
		}
		row("Waits for a server", "build-1", "One is there, and follows it when it has a place.")
		claim := storetest.MustClaim(t, w.store, r.Session, "w1")
		row("Followed")
		b.open("/calls/"+call).page().want(http.StatusOK, "Still running since", "The server was restarted at", "nothing was interrupted.")
		storetest.MustAppend(t, w.store, claim, journal.PhaseSafe, storetest.Settle(call, journal.CallSucceeded))
		b.open("/running").page().want(http.StatusOK, "None of your runbooks’ commands runs just now")
	})
}
