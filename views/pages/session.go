package pages

import (
	"fmt"

	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
)

// Session is the page of one session, on one snapshot.
type Session struct {
	Frame
	S        components.Session
	Requests []components.DecisionCard
	Unknown  []components.UnknownCard
	Attempts []components.AttemptCard
	Entries  []components.Entry
	Window   int64 // ?before of this page; 0: the newest
	Queue    []components.QueuedPrompt
	Composer components.Composer
	Keys     SessionKeys
	// Forgotten is shown in place of *continue* if the agent has forgotten the session.
	Forgotten components.ForgottenCard
	Raise     components.RaiseTyped // of a *continue* that was refused
	Trace     components.TraceView
	Commands  components.CommandList // of the agent

	// The last entry that the viewer had on their screen before they left, and
	// when that was; 0: they were not away, or the marker stands elsewhere.
	AwayAfter, AwaySince int64
	Seen                 int64 // the last entry that is known to have been seen
}

// SessionKeys are the idempotency keys of the page's other forms.
type SessionKeys struct{ Continue, Archive string }

// Locked reports whether the page reloads by itself; then it has no form that text could be lost from.
func (p Session) Locked() bool { return p.Refresh > 0 }

// liveAttributes connect the page to its stream. A page that reloads by itself,
// or that shows an earlier window, has none.
func (p Session) liveAttributes() templ.Attributes {
	if p.Locked() || p.Window != 0 {
		return nil
	}
	return templ.Attributes{
		"id": "live", "hx-ext": "sse", "sse-connect": fmt.Sprintf("%s/stream?after=%d", p.S.Path(), p.S.LastSeq), "sse-close": "gone",
		"data-now": fmt.Sprint(p.S.Now), "data-session": p.S.Path(), "data-seen": fmt.Sprint(p.Seen), "data-announce": p.Announce,
	}
}

// AwayBefore reports whether the viewer left before the first entry of the window.
func (p Session) AwayBefore() bool { return p.AwayAfter > 0 && p.AwayAfter < p.First() }

// First and Last are the seqs of the window; 0 if it is empty.
func (p Session) First() int64 {
	if len(p.Entries) == 0 {
		return 0
	}
	return p.Entries[0].Seq
}

// Last is the seq of the window's last entry.
func (p Session) Last() int64 {
	if len(p.Entries) == 0 {
		return 0
	}
	return p.Entries[len(p.Entries)-1].Seq
}

// EndsWith says where the journal ends: at its last row, or at a piece that a row above has.
func (p Session) EndsWith() string {
	words := "End of the journal, entry " + components.Number(p.Last())
	if n := len(p.Entries); n > 0 && p.Entries[n-1].Piece {
		words += ", which stands within a row above"
	}
	return words + "."
}

// NeedsAnything reports whether a card stands above the journal.
func (p Session) NeedsAnything() bool {
	return len(p.Requests)+len(p.Unknown)+len(p.Attempts) > 0 || p.S.State.Blocked != nil
}

// RequestsRest says that more is asked than stands here; nothing if it isn't.
func (p Session) RequestsRest() components.Phrase {
	shown, all := len(p.Requests), len(p.S.State.Pending)
	if all <= shown {
		return nil
	}
	return components.Say(fmt.Sprintf("These are the oldest %d of %s. The others come here as these are answered. What waits over all sessions: ", shown, components.Plural(all, "request")),
		components.Link("/needs-you", "Needs you"), ".")
}

// NothingNeeded is said where no card and no form stands above the journal.
func (p Session) NothingNeeded() string {
	if p.S.State.Needs() == journal.NeedsReview {
		return "Read what it did below; archive it when you are done, or send the next message."
	}
	return "Nothing needs you here."
}

// AgentMissing reports whether the session waits for its agent, of which there is a page.
func (p Session) AgentMissing() bool {
	return p.S.AgentHref != "" && p.S.State.Blocked != nil && p.S.State.Blocked.Cause == journal.BlockAgent
}

// BlockedOnly reports a block that the owner can't lift by *continue*.
func (p Session) BlockedOnly() bool {
	return p.S.State.Blocked != nil && !p.S.State.Blocked.Cause.Lifted()
}
