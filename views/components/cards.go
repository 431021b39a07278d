package components

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"

	"holdfast/journal"
)

// DecisionCard asks for an answer to one request.
type DecisionCard struct {
	Request *journal.Request
	Agent   string // whose call it is; "": it isn't at hand
	Payload Payload
	Key     string
	Message string // what was typed before, after a refusal
	Own     bool   // on its own page: the whole payload is shown, whatever its size
	Locked  bool   // this page reloads by itself: no form that text could be lost from
	Nr, Of  int    // of the pending requests of its call; Of 0: the others aren't at hand
	Again   bool   // another request of its call asks for the same
	Twin    int    // of the calls that wait and would do the same
	Twins   int    // how many of them there are; 0: none, or the others aren't at hand
	Alike   int    // of the calls that wait and read alike here, but would not do the same
	Alikes  int    // how many of them there are; 0: none
	Differs string // what of this one another of them doesn't say, in a line; "": nothing that stands here
	Now     int64
}

// NewDecisionCard makes the card of a pending request; call may be nil if it isn't at hand.
func NewDecisionCard(r *journal.Request, call *journal.Call, now int64, key string) DecisionCard {
	return DecisionCard{Request: r, Payload: RequestPayload(r, call), Key: key, Now: now}
}

// notRunYet says of a call that it wasn't run: of one that is asked for once more another
// notice tells.
func (c DecisionCard) notRunYet() string {
	if c.Payload.Again != "" {
		return ""
	}
	return ", of which nothing has been run"
}

// Asks says what is asked, for a heading.
func (c DecisionCard) Asks() string {
	return asks(c.Request.Permission, c.Payload.Tool, c.Request.Resources)
}

// judgedLabel names what the call was judged by: what it reaches, or its commands.
func (c DecisionCard) judgedLabel() string {
	switch c.Request.Permission {
	case "external_directory", "edit", "read", "web":
		return "Reaches"
	}
	return "Judged as"
}

// reaches reports whether what the call was judged by says where it would act, in so
// few words that they stand before the buttons. A change names its files itself.
func (c DecisionCard) reaches() bool {
	res := c.Resources()
	return c.judgedLabel() == "Reaches" && c.Payload.Diff == nil && 0 < len(res) && rows(strings.Join(res, "\n"), narrowColumns) <= factRows
}

// asked are the facts that are read before the buttons: warnings first, then what
// is asked besides the text.
func (c DecisionCard) asked() []Fact {
	return c.factsThat(func(f Fact) bool { return !slices.Contains(c.Payload.beside, f.Name) })
}

// beside are the facts that only say how it would run; they stand below the buttons.
func (c DecisionCard) beside() []Fact {
	return c.factsThat(func(f Fact) bool { return slices.Contains(c.Payload.beside, f.Name) })
}

// said is what the agent gave its tool besides, as far as it stands on this page.
func (c DecisionCard) said() []Fact {
	if !c.Own && !c.Payload.Short() {
		return nil
	}
	return c.Payload.Said
}

func (c DecisionCard) factsThat(are func(Fact) bool) (out []Fact) {
	if !c.Own && !c.Payload.Short() {
		return nil
	}
	for _, f := range c.Payload.Facts {
		if are(f) {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Fact) int { return cmp.Compare(warningOf(a), warningOf(b)) })
	return out
}

// warningOf sorts the facts that must be read first to the front.
func warningOf(f Fact) int {
	if i := slices.Index([]string{takeCare, whyAsked}, f.Name); i >= 0 {
		return i
	}
	return 2
}

// How much of a payload is seen at once in a card (app.css: .card-ask .cmd); what is
// longer scrolls there, so that the buttons stay near.
const (
	narrowColumns, narrowRows = 38, 6
	wideColumns, wideRows     = 95, 16
	factRows                  = 6
)

// rows is about how many lines a text takes where so many characters stand in one.
func rows(s string, columns int) int {
	n := 0
	for line := range strings.Lines(s) {
		n += 1 + max(0, utf8.RuneCountInString(line)-2)/columns
	}
	return n
}

// scrolls says that the payload is longer than what is seen of it at once: in any
// window, or in a narrow one only; "": it isn't.
func (c DecisionCard) scrolls() (says string, wide bool) {
	if !c.Answerable() {
		return "", false
	}
	text, n := c.Shown(), Lines(c.Shown())
	if d := c.diff(); d != nil {
		text, n = diffText(d.cut(d.Open)), min(d.Len(), d.Open)
	}
	if rows(text, narrowColumns) <= narrowRows {
		return "", false
	}
	return "Scroll in the box above to read all of it, " + Plural(n, "line") + ".", rows(text, wideColumns) > wideRows
}

// diff is what the call would change, as this page shows it; nil: it shows text.
func (c DecisionCard) diff() *Diff {
	id, of := c.Request.ID+"-change", ", asked as entry "+Number(c.Request.AskedSeq)
	d := c.Payload.Diff.bounded(cardDiffLines, id, of, c.Path())
	if c.Own {
		d = c.Payload.Diff.whole(id, of)
	}
	if d != nil {
		d.Boxed = true
	}
	return d
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

// shownRuns is what would be run beside the change, as far as it stands on this page.
func (c DecisionCard) shownRuns() string {
	if c.Own || c.Payload.Short() {
		return c.Payload.Runs
	}
	return firstOf(c.Payload.Runs)
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
	list := slices.DeleteFunc(slices.Clone(c.Request.Resources), func(r string) bool { return strings.TrimSpace(r) == "" })
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
	Others   int  // outcomes of the session that are unknown besides
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

// agentsOwn reports whether the call is one of an agent's own, which the server neither runs
// nor keeps it from running.
func (c UnknownCard) agentsOwn() bool { return c.Call != nil && c.Call.AttemptID != "" }

// Outcomes are what a person may have found; none is preselected.
func (c UnknownCard) Outcomes() []Choice {
	again := "It may propose it again, and will ask you first."
	if c.agentsOwn() {
		again = "It may do it again, and asks you first only if it asks for such calls."
	}
	return []Choice{
		{string(journal.Happened), "It happened", "The agent is told that it was done, and goes on after it."},
		{string(journal.DidNotHappen), "It did not happen", "The agent is told that it was not run. " + again},
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
	Sends    bool   // the turn was stopped for a message, which waits
	Outcome  string // what was chosen before, after a refusal
	Evidence string
	Problem  string             // what was wrong with it
	Field    string             // the field that is wrong: outcome or evidence
	Others   int                // outcomes of the session that are unknown besides
	Lost     *journal.AgentLost // the process that may still work on it; nil: it is known not to run
	Now      int64
}

// lostWords say what became of the agent, as far as is known (LEA-12).
func (c AttemptCard) lostWords() Phrase {
	const rest = " How far it came is not known: what it said and did until then stands in the journal. The message was not sent again."
	if c.Lost == nil {
		return Say("The agent was given a message and was lost before it had answered." + rest)
	}
	return Say("The agent was given a message, and its server was lost before it had answered. Its process ran ", whereLost(c.Lost), ". It may still be running there, and at work on this: no server there answers."+rest)
}

// lastDecides says that an answer isn't the last that is needed; "" if it is.
func lastDecides(others int) string {
	switch others {
	case 0:
		return ""
	case 1:
		return "Another outcome is unknown, too. Nothing goes on before both are answered; then the session goes on or stays stopped, as the last answer says."
	}
	return fmt.Sprintf("%d other outcomes are unknown, too. Nothing goes on before all are answered; then the session goes on or stays stopped, as the last answer says.", others)
}

// Outcomes are what may become of a request; none is preselected.
func (c AttemptCard) Outcomes() []Choice {
	again, without := "The agent is asked for all of it once more. ", "it is asked to go on from there."
	if c.Sends {
		again, without = "The agent is asked for all of it once more, together with the message that you stopped the turn for. ", "the message that you stopped the turn for is delivered."
	}
	first := ""
	if c.Lost != nil {
		first = " A second process of the agent begins, perhaps while the first is still at work on the same. Make sure before that the first has ended."
	}
	return []Choice{
		{string(journal.AttemptRetry), "Send the same message again", again + "It may do everything twice, and may be billed twice." + first},
		{string(journal.AttemptAbandon), "Go on without", "The message is not sent again. What the agent has done stays, and " + without + first},
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
	Next     bool // the turn was, or is to be, stopped for it
	Joins    bool // a steer reaches the agent in the middle of the open turn
	Text     string
	Key      string
}

// Bounds of what is shown of a message that waits, in whole lines.
const (
	queuedLines = 8
	queuedBytes = 600
)

// First is the beginning of the message.
func (p QueuedPrompt) First() string {
	first, _, _ := HeadTail(p.Text, queuedLines, 0)
	return journal.Cut(first, queuedBytes)
}

// Rest says that there is more of it; "": there isn't.
func (p QueuedPrompt) Rest() string {
	if first := p.First(); strings.TrimSpace(first) == strings.TrimSpace(p.Text) {
		return ""
	}
	return "This is its beginning, of " + Plural(Lines(p.Text), "line") + ", " + Bytes(int64(len(p.Text))) + ". All of it is delivered."
}

// AgentPath is the page of an agent of a server.
func AgentPath(name string) string { return "/settings/agents/" + url.PathEscape(name) }

// Agent is one that a worker offers, or can't, with the reason.
type Agent struct {
	Name, Kind, Reason string
	Available          bool
}
