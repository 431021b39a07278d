package components_test

import (
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// Bookkeeping is what nobody has to read: nothing that a person did, nothing that an
// agent said or did to the world, and nothing that went wrong.
func TestEntries_Bookkeeping(t *testing.T) {
	t.Parallel()
	folds := map[journal.Kind]bool{
		journal.KindTurnStarted: true, journal.KindStepStarted: true, journal.KindAgentStarted: true, journal.KindAgentOpened: true, journal.KindAgentCommands: true, journal.KindAgentOptions: true, journal.KindAgentSetting: true,
		journal.KindAgentEnded: true, journal.KindAttemptPrepared: true, journal.KindAttemptDispatched: true, journal.KindAttemptReceiving: true, journal.KindAttemptSettled: true,
	}
	two, none := 2, 0
	loud := []journal.Body{
		&journal.StepStarted{Step: journal.Step{Name: "Build", Index: 1, Of: 2}},
		&journal.AgentEnded{ExitCode: &two}, &journal.AgentEnded{Signal: "SIGKILL"}, &journal.AttemptSettled{Outcome: "refusal"},
		&journal.AgentOptions{Changed: []string{"mode"}}, &journal.AgentSetting{Outcome: journal.SettingRefused},
	}
	quiet := []journal.Body{&journal.AgentEnded{ExitCode: &none}, &journal.AttemptSettled{Outcome: "end_turn"}, &journal.AgentOptions{}, &journal.AttemptSettled{}}
	seen := map[journal.Kind]bool{}
	for _, tt := range fixtures.EveryKind() {
		w := window(t, tt.Body)
		w.Events[0].Actor = tt.Actor
		e := components.Entries(w)[0]
		kind := tt.Body.Kind()
		seen[kind] = seen[kind] || e.Bookkeeping
		if e.Bookkeeping && (!folds[kind] || tt.Actor.Type == journal.ActorUser || e.Piece || e.Class != "minor") {
			t.Errorf("%s is bookkeeping: %+v", kind, e)
		}
		if got := render(t, components.JournalRow(e, now)).Find("li.bookkeeping").Length() == 1; got != e.Bookkeeping {
			t.Errorf("%s: its row says that it is bookkeeping: %v", kind, got)
		}
	}
	for kind := range folds {
		if !seen[kind] {
			t.Errorf("no %s is bookkeeping", kind)
		}
	}
	for want, list := range map[bool][]journal.Body{false: loud, true: quiet} {
		for _, body := range list {
			if got := components.Entries(window(t, body))[0].Bookkeeping; got != want {
				t.Errorf("%s %+v is bookkeeping: %v", body.Kind(), body, got)
			}
		}
	}
}
