package components

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"holdfast/journal"
)

// DecisionCard asks for an answer to one request.
type DecisionCard struct {
	Request *journal.Request
	Payload Payload
	Key     string
	Message string // what was typed before, after a refusal
	Own     bool   // on its own page: the whole payload is shown, whatever its size
	Locked  bool   // this page reloads by itself: no form that text could be lost from
	Nr, Of  int    // of the pending requests of its call; Of 0: the others aren't at hand
	Now     int64
}

// NewDecisionCard makes the card of a pending request; call may be nil if it isn't at hand.
func NewDecisionCard(r *journal.Request, call *journal.Call, now int64, key string) DecisionCard {
	return DecisionCard{Request: r, Payload: RequestPayload(r, call), Key: key, Now: now}
}

// Asks says what is asked, for a heading.
func (c DecisionCard) Asks() string { return asks(c.Request.Permission, c.Payload.Tool) }

// Place says which of its call's requests this is; "" if it is the only one.
func (c DecisionCard) Place() string {
	if c.Of < 2 {
		return ""
	}
	return fmt.Sprintf("%d of %d permissions for this command. It runs when all of them are allowed.", c.Nr, c.Of)
}

// Nth is Place in a few words, for a heading.
func (c DecisionCard) Nth() string {
	if c.Of < 2 {
		return ""
	}
	return fmt.Sprintf("%d of %d for this command", c.Nr, c.Of)
}

// For is what the request is about, in one line: the first thing that the call
// was judged by, and how many more there are. It tells requests of one call apart.
func (c DecisionCard) For() (first, more string) {
	list := c.Request.Resources
	if c.Of < 2 || len(list) == 0 {
		return "", ""
	}
	if len(list) > 1 {
		more = fmt.Sprintf("and %d more", len(list)-1)
	}
	return Line(list[0], 80), more
}

// Apart is what a control's name has behind its words where another request of
// the call has a control of the same words; "" where none has.
func (c DecisionCard) Apart() string {
	if c.Of < 2 {
		return ""
	}
	first, more := c.For()
	words := slices.DeleteFunc([]string{c.Asks(), strings.TrimSpace(Plain(first) + " " + more), c.Nth()}, func(s string) bool { return s == "" })
	return ": " + strings.Join(words, ", ")
}

// NumberCards tells several requests of one call apart, in the order in which
// they were asked.
func NumberCards(cards ...*DecisionCard) {
	for _, c := range cards {
		c.Nr, c.Of = 1, 0
		for _, other := range cards {
			if other.Request.Tool.CallID != c.Request.Tool.CallID {
				continue
			}
			c.Of++
			if other.Request.AskedSeq < c.Request.AskedSeq {
				c.Nr++
			}
		}
	}
}

// judgedLabel names what the call was judged by: what it reaches, or its commands.
func (c DecisionCard) judgedLabel() string {
	switch c.Request.Permission {
	case "external_directory", "edit", "read", "web":
		return "Reaches"
	}
	return "Judged as"
}

// diff is what the call would change, as this page shows it; nil: it shows text.
func (c DecisionCard) diff() *Diff {
	id, of := c.Request.ID+"-change", ", asked as entry "+Number(c.Request.AskedSeq)
	if c.Own {
		return c.Payload.Diff.whole(id, of)
	}
	return c.Payload.Diff.bounded(cardDiffLines, id, of, c.Path())
}

// Path is the request's own page.
func (c DecisionCard) Path() string { return "/permissions/" + c.Request.ID }

// Answerable reports whether the whole payload stands on this page, so that buttons may (R7).
func (c DecisionCard) Answerable() bool {
	return !c.Locked && (c.Payload.Short() || c.Own && c.Payload.Known)
}

// Shown is the text that stands on this page.
func (c DecisionCard) Shown() string {
	if c.Own || c.Payload.Short() {
		return c.Payload.Text
	}
	return c.Payload.First()
}

// maxResources and maxResource bound what a card shows of what a call was
// judged by: it is beside the payload, which is what is allowed.
const (
	maxResources = 40
	maxResource  = 500
)

// Resources are what the call was judged by, if that is more than its text. A
// request's own page has all of them.
func (c DecisionCard) Resources() []string {
	list := c.Request.Resources
	if len(list) == 1 && Line(list[0], 1<<20) == Line(c.Payload.Text, 1<<20) {
		return nil
	}
	if c.Own {
		return list
	}
	var out []string
	for i, r := range list {
		if i == maxResources {
			return append(out, fmt.Sprintf("… %d more", len(list)-i))
		}
		out = append(out, Line(r, maxResource))
	}
	return out
}

// UnknownCard asks what became of one call.
type UnknownCard struct {
	Call     *journal.Call
	Payload  Payload
	Key      string
	Now      int64
	Outcome  string // what was chosen before, after a refusal
	Evidence string
	Problem  string // what was wrong with it
	Field    string // the field that is wrong: outcome or evidence
	Locked   bool
	Own      bool // on its own page
}

// Path is the call's own page.
func (c UnknownCard) Path() string { return CallPath(c.Call.ID) }

func (c UnknownCard) intent() Word {
	if c.Own {
		return EntryOf(c.Call.SessionID, c.Call.ProposedSeq)
	}
	return EntryLink(c.Call.ProposedSeq)
}

// CallPath is where a call's own page is.
func CallPath(id string) string { return "/calls/" + id }

// NewUnknownCard makes the card of a call whose outcome isn't recorded.
func NewUnknownCard(c *journal.Call, now int64, key string) UnknownCard {
	return UnknownCard{Call: c, Payload: CallPayload(c), Key: key, Now: now}
}

// where says on which host the call ran, and as which process.
func (c UnknownCard) where() Phrase {
	p := c.Call.Process
	if p.PID == 0 {
		return Say("Host ", Code(p.Host))
	}
	return Say("Host ", Code(p.Host), fmt.Sprintf(", process %d", p.PID))
}

// Choice is one of several answers, with what it means.
type Choice struct{ Value, Label, Hint string }

// Outcomes are what a person may have found; none is preselected.
func (UnknownCard) Outcomes() []Choice {
	return []Choice{
		{string(journal.Happened), "It happened", "The agent is told that it was done, and goes on after it."},
		{string(journal.DidNotHappen), "It did not happen", "The agent is told that it was not run. It may propose it again, and will ask you first."},
		{string(journal.InPart), "It happened in part", "Say below what is there. The agent is told, and does not assume the rest."},
		{string(journal.CannotTell), "I cannot tell", "It stays marked as unknown. The agent must not depend on it."},
	}
}

// Bounded is a command in at most 20 lines.
func Bounded(s string) string {
	first, _, left := HeadTail(Uncoloured(s), 20, 0)
	if left > 0 {
		first += "\n… " + Plural(left, "more line")
	}
	return journal.Cut(first, 4000)
}

// Ending is evidence in about 20 lines: what it is, and the end of what was seen,
// which tells how far a command has come.
func Ending(s string) string {
	first, last, left := HeadTail(Uncoloured(s), 1, 19)
	if left > 0 {
		first += "\n… " + Plural(left, "line") + " before this\n" + last
	}
	return journal.Cut(first, 4000)
}

// AttemptCard asks what shall become of a message to an agent that was lost before
// it had answered (ATT-6).
type AttemptCard struct {
	ID       string
	Agent    string
	Message  string // the beginning of what was sent; "": it isn't at hand
	Whole    Phrase // where all of it stands
	Key      string
	Locked   bool
	Outcome  string // what was chosen before, after a refusal
	Evidence string
	Problem  string // what was wrong with it
	Field    string // the field that is wrong: outcome or evidence
}

// Outcomes are what may become of a request; none is preselected.
func (AttemptCard) Outcomes() []Choice {
	return []Choice{
		{string(journal.AttemptRetry), "Send the same message again", "The agent is asked for all of it once more. It may do everything twice, and may be billed twice."},
		{string(journal.AttemptAbandon), "Go on without", "The message is not sent again. What the agent has done stays, and it is asked to go on from there."},
	}
}

// The keys of forms are new in every page, so they say nothing of a change.
func (c DecisionCard) keyless() DecisionCard { c.Key = ""; return c }

func (c UnknownCard) keyless() UnknownCard { c.Key = ""; return c }

func (c AttemptCard) keyless() AttemptCard { c.Key = ""; return c }

// version tells whether two drawings show the same, for a script that must not
// change what somebody reads.
func version(ctx context.Context, c templ.Component) (string, error) {
	h := sha256.New()
	err := c.Render(ctx, h)
	return hex.EncodeToString(h.Sum(nil)[:6]), err
}

// QueuedPrompt is an admitted message that was not delivered yet.
type QueuedPrompt struct {
	ID       string
	Seq      int64
	At       int64
	Delivery journal.Delivery
	Text     string
	Key      string
}

// AgentPath is the page of an agent of a server.
func AgentPath(name string) string { return "/settings/agents/" + url.PathEscape(name) }

// Agent is one that a worker offers, or can't, with the reason.
type Agent struct {
	Name, Kind, Reason string
	Available          bool
}

// Composer is the form for the next message.
type Composer struct {
	Session  Session
	Text     string // what was typed before and not sent
	KeptAt   int64  // when it was kept; 0: it wasn't
	Replaced string // another form's text, which the kept one took the place of just now
	Key      string
	Problem  string
	Waiting  int  // messages that were not delivered yet
	Steers   bool // the agent takes text in mid-turn (PRO-4)
	Locked   bool
}

// QueueLabel and QueueHint say what the first button does.
func (c Composer) QueueLabel() string {
	if st := &c.Session.State; st.TurnOpen() || (st.Held && st.Forgotten != nil) {
		return "Queue for the next turn"
	}
	return "Start the next turn"
}

// QueueHint says what will happen to a queued message.
func (c Composer) QueueHint() string {
	st := &c.Session.State
	switch {
	case st.Unknowns() > 0:
		return "It is kept, and delivered once the unknown outcome has been reconciled."
	case st.Blocked != nil:
		return "It is kept, and delivered once the session can go on."
	case st.TurnOpen() && c.Waiting > 0:
		return "It is delivered when this turn has ended, after " + Plural(c.Waiting, "message") + " that already " + waits(c.Waiting) + "."
	case st.TurnOpen():
		return "It is delivered when this turn has ended."
	case st.Held && st.Forgotten != nil:
		return "It is kept, and delivered once a new conversation is started."
	case st.Held && c.Waiting > 0:
		return "This ends the hold: " + Plural(c.Waiting, "held message") + " will be delivered first, then this one."
	case c.Waiting > 0:
		return "It is delivered after " + Plural(c.Waiting, "message") + " that already " + waits(c.Waiting) + "."
	}
	return "It is delivered as soon as a worker is free."
}

func waits(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

// SteerLabel says what the second button does.
func (c Composer) SteerLabel() string {
	if !c.Steers {
		return "Send before the queue"
	}
	return "Steer this turn"
}

// afterTurn is said of an agent that takes no text while it works (PRO-4).
const afterTurn = "This agent takes no text while it works: it is delivered when the agent has done what it is at, before the queue. To have it read sooner, stop the turn and continue."

// SteerHint says what will happen to a steer.
func (c Composer) SteerHint() string {
	st := &c.Session.State
	switch {
	case st.Unknowns() > 0:
		return "It is kept until the unknown outcome has been reconciled, then delivered before the queue."
	case !c.Steers && len(st.Pending) > 0:
		return "It answers no request. " + afterTurn
	case !c.Steers:
		return afterTurn
	case len(st.Pending) > 0:
		return "It answers no request: it is delivered at the next safe point after you have decided."
	}
	return "It is delivered at the next safe point of this turn, between two steps."
}
