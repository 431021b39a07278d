package components

import (
	"slices"

	"holdfast/journal"
)

// After makes the card's warning say what is known now of the same call before, whose
// outcome was lost: when it was asked may be before that was reconciled. A request that
// is answered warns of nothing any more. lost nil: it isn't at hand.
func (c *DecisionCard) After(lost *journal.Call) {
	at := slices.IndexFunc(c.Payload.Facts, func(f Fact) bool { return f.Name == takeCare })
	switch {
	case at < 0:
	case c.Request.State != journal.RequestPending:
		c.Payload.Facts = slices.Delete(c.Payload.Facts, at, at+1)
	case lost != nil:
		c.Payload.Facts[at].Value = "The same call was started before, as entry " + Number(lost.ProposedSeq) + ", and its outcome was lost. " + secondTime(lost.Resolution)
	}
}

// secondTime says what it would mean to run a call after what was found out about the
// same one.
func secondTime(found *journal.Resolution) string {
	if found == nil {
		return "Nobody has said yet what became of it. If it happened, this would be the second time."
	}
	switch found.Outcome {
	case journal.Happened:
		return "It was reconciled since: it happened. This would be the second time."
	case journal.DidNotHappen:
		return "It was reconciled since: it did not happen. If that is right, this is the first time."
	case journal.InPart:
		return "It was reconciled since: it happened in part. This would do that part a second time."
	case journal.CannotTell:
	}
	return "It was looked at since, and nobody can tell what became of it. If it happened, this would be the second time."
}
