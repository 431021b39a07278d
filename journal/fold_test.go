package journal

import (
	"encoding/json"
	"slices"
	"testing"
)

// What was said with a rejection is told until a message that has it has reached the
// agent, as far as is known.
//
// proves PER-2
func TestFold_Feedback(t *testing.T) {
	t.Parallel()
	f := NewFold(State{}, 0)
	seq := int64(0)
	tell := func(body Body) {
		t.Helper()
		seq++
		data, err := Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Chained(&Event{Seq: seq, Kind: body.Kind(), Version: 1, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	sends := func(id string) { t.Helper(); tell(&AttemptPrepared{AttemptID: id, TurnID: "trn_1", CutoffSeq: seq}) }
	rejects := func(call, attempt, message string) {
		t.Helper()
		tell(&CallProposed{CallID: call, TurnID: "trn_1", Input: json.RawMessage(`{}`), AttemptID: &attempt})
		tell(&PermissionAsked{ID: "per_" + call, Tool: ToolRef{CallID: call}})
		tell(&PermissionReplied{ID: "per_" + call, Reply: ReplyReject, Message: message})
		tell(&CallSettled{CallID: call, State: CallIsRefused, Reason: "rejected"})
	}
	want := func(ids ...string) {
		t.Helper()
		var got []string
		for _, c := range f.Feedback() {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("after %d events %v is to be told, want %v", seq, got, ids)
		}
	}
	tell(&TurnStarted{TurnID: "trn_1", Cause: CausePrompt})
	sends("att_1")
	rejects("call_1", "att_1", "no")
	rejects("call_2", "att_1", "")
	want("call_1")
	tell(&AttemptSettled{AttemptID: "att_1"})
	sends("att_2")
	want()
	tell(&AttemptFailed{AttemptID: "att_2"})
	want("call_1")
	sends("att_3")
	rejects("call_3", "att_3", "nor that")
	want("call_3")
	tell(&AttemptUnknown{AttemptID: "att_3"})
	tell(&AttemptResolved{AttemptID: "att_3", Outcome: AttemptRetry})
	want("call_1", "call_3")
	sends("att_4")
	want()
	rejects("call_5", "att_4", "not so")
	tell(&AttemptPrepared{AttemptID: "att_5", TurnID: "trn_1", CutoffSeq: 1}) // it has no room for all the prompts
	want()
	if f.Told != 1 {
		t.Errorf("the prompts are told up to %d, want 1", f.Told)
	}
	tell(&AttemptFailed{AttemptID: "att_5"})
	want("call_5")
	tell(&TurnStarted{TurnID: "trn_2", Cause: CausePrompt})
	want()
}
