package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// The warning that the same call was lost before says what is known of that now, and
// ends with the request (CAL-6).
func TestAskCard_TakeCare(t *testing.T) {
	t.Parallel()
	found := func(v journal.Verdict) *journal.Call {
		return &journal.Call{ID: "call_0", ProposedSeq: 4, State: journal.CallIsUnknown, Resolution: &journal.Resolution{Outcome: v}}
	}
	for _, tt := range []struct {
		name, says string
		lost       *journal.Call
		state      journal.RequestState
	}{
		{"not at hand", "its outcome was lost", nil, journal.RequestPending},
		{"unknown still", "as entry #0004, and its outcome was lost. Nobody has said yet", &journal.Call{ProposedSeq: 4}, journal.RequestPending},
		{"happened", "reconciled since: it happened. This would be the second time", found(journal.Happened), journal.RequestPending},
		{"did not", "this is the first time", found(journal.DidNotHappen), journal.RequestPending},
		{"in part", "it happened in part", found(journal.InPart), journal.RequestPending},
		{"cannot tell", "nobody can tell", found(journal.CannotTell), journal.RequestPending},
		{"answered", "", found(journal.Happened), journal.RequestApprovedOnce},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := request(t, "make deploy", map[string]any{"same_as_unknown": true})
			r.State = tt.state
			card := components.NewDecisionCard(r, callOf(t, "make deploy"), now, "key")
			card.After(tt.lost)
			got := text(render(t, components.AskCard(card)).Find(".kv"))
			if (tt.says == "") != !strings.Contains(got, "Take care") || !strings.Contains(got, tt.says) {
				t.Errorf("says %q, want %q", got, tt.says)
			}
		})
	}
}
