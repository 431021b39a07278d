package components

import (
	"fmt"

	"holdfast/journal"
)

// NeedsYou is the third reading.
func (s Session) NeedsYou() Reading {
	needs := s.State.Needs()
	r := Reading{Key: string(needs), Words: "Nothing", Icon: "none", Tone: ToneOff, Detail: Say("You can leave.")}
	switch needs {
	case journal.NeedsReconcile:
		r.Words, r.Icon, r.Tone, r.Href = fmt.Sprintf("%d to reconcile", s.State.Unknowns()), "unk", ToneUnk, "#needs"
		r.Detail = Say("Since ", At(s.State.BaseSince), ", no time limit.")
	case journal.NeedsDecision:
		r.Words, r.Icon, r.Tone, r.Href = Plural(len(s.State.Pending), "decision"), "ask", ToneAsk, "#needs"
		r.Detail = Say("Since ", At(s.State.BaseSince), ", no time limit.")
		if s.State.Base == journal.StateStopping { // since when it has been, and what is asked is cancelled with it
			r.Detail = Say("Or it is cancelled when the turn stops.")
		}
	case journal.NeedsBlocked:
		r.Words, r.Icon, r.Tone, r.Href = "Something is missing", "ask", ToneAsk, "#needs"
		r.Detail = Say("Since ", At(s.State.BaseSince), ". Nothing is lost.")
		if s.staysUp() {
			r.Words, r.Detail = "A process to end", Say("It could not be ended. Nothing is lost.")
		}
	case journal.NeedsReview:
		r.Words, r.Icon, r.Tone, r.Href = "Ready for review", "rev", ToneRev, "#latest"
		r.Detail = Say("Read what was done, then go on or archive it.")
	default:
		if s.Full {
			r.Detail = Say("Nothing new is recorded just now: the disk is full.")
		}
	}
	if s.State.Adopts() && s.State.Base != journal.StateStopping && (needs == journal.NeedsDecision || needs == journal.NeedsBlocked) { // its base is since when that runs
		r.Detail = Say("No time limit.")
	}
	switch {
	case !s.unfinished():
	case needs == journal.NeedsBlocked:
		r.Words, r.Icon, r.Tone, r.Href = "1 to continue", "ask", ToneAsk, "#needs"
		r.Detail = Say(s.howUnfinished() + ".")
	case needs == journal.NeedsReview:
		r.Words, r.Href, r.Detail = "To look at", "#needs", Say(s.howUnfinished()+".")
	default:
		r.Detail = Say(s.howUnfinished() + ".")
	}
	return r
}

// unfinished reports whether the last turn ended otherwise than by its own end, so
// that there is nothing to review, but something that can be continued.
func (s Session) unfinished() bool {
	switch s.State.Base {
	case journal.StateStopped, journal.StateFailed, journal.StateLimitReached:
		return s.State.Held && s.Continuable()
	default:
		return false
	}
}

// howUnfinished says what is left of a turn that ended so.
func (s Session) howUnfinished() string {
	if s.wasDone() {
		return "The turn was done when it was stopped"
	}
	return "The turn is not finished"
}

// wasDone reports whether the last turn was stopped when nothing of it was left.
func (s Session) wasDone() bool { return s.State.Turn != nil && s.State.Turn.Done }

// TitlePrefix puts before a page's title what the session needs (ux §4.5).
func (s Session) TitlePrefix() string {
	switch s.State.Needs() {
	case journal.NeedsReconcile:
		return fmt.Sprintf("(%d) To reconcile: ", s.State.Unknowns())
	case journal.NeedsDecision:
		return fmt.Sprintf("(%d) Decision needed: ", len(s.State.Pending))
	case journal.NeedsBlocked:
		if s.unfinished() {
			return "To continue: "
		}
		if s.staysUp() {
			return "A process to end: "
		}
		return "Something is missing: "
	case journal.NeedsReview:
		if s.unfinished() {
			return "To look at: "
		}
		return "Ready for review: "
	default:
		return ""
	}
}

// TabIcon is what a browser's tab shows of the session, in the order of the
// title's prefix; "" is the plain one.
func (s Session) TabIcon() string {
	switch s.State.Needs() {
	case journal.NeedsReconcile:
		return "reconcile"
	case journal.NeedsDecision, journal.NeedsBlocked:
		return "decision"
	case journal.NeedsReview:
		return "review"
	default:
		return ""
	}
}
