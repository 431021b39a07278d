package components

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"holdfast/journal"
)

// Bounds of text inside the journal's list; all of it is in the export.
const (
	proseBytes  = 16 << 10
	opaqueBytes = 2 << 10
)

// Window is a piece of a journal with what stands beside it, on one snapshot.
type Window struct {
	SessionID string
	Events    []journal.Event
	Calls     map[string]*journal.Call
	Before    map[string]json.RawMessage // of calls of which their agents said something else once somebody was asked: their inputs until then
	Outputs   map[string]Ends
	Texts     map[string]string // of promoted prompts, by prompt; of long messages, by message and part
	Writing   map[string]Writing
	Untold    map[string]string // prompts that hadn't been sent when their turns ended, and these turns
	Through   int64             // the last seq: what isn't in Events up to there is a piece; 0: nothing is missing
	Ended     int64             // the time of that seq
	Agent     string
	Viewer    Viewer
	Now       int64
}

// Entry is one row of the journal as people see it.
type Entry struct {
	Seq    int64
	Time   int64
	Kind   string
	Class  string // "you", "tool", "minor" or ""
	Icon   string
	Title  Phrase
	Note   Phrase // beside the title, small
	Lines  []Phrase
	Prose  string // text of a person or of the agent
	Rich   bool   // Prose is Markdown: only what an agent wrote and completed
	Cut    int64  // bytes of Prose that are left out
	Fold   string // Prose stands behind these words
	Output *Output
	Live   *LiveOutput // of the call that this entry started
	What   *CallWhat   // of the agent's own call that this entry proposes
	Raw    string      // what is folded away: of an event that this build doesn't know, say

	// A row without anything to read: a piece of output, of a message or of what a
	// call is, which another row shows; or, from From on, a run of them.
	Piece bool
	From  int64
	With  int64 // the first of the pieces that stand between the row before and this one; 0: none do, or it isn't known

	Draft    *Draft // of the message that begins here and isn't complete
	Adds     string // a piece's text, which a script moves to its message's draft
	AddsTo   string // that draft's id
	Finishes string // the id of the draft whose place this entry takes

	Bookkeeping bool // it need not be read

	Of string // the request, call or attempt whose card this entry answers
}

// of ties a row to the card that it answers: a script tells by it what became of the card.
func (e Entry) of() templ.Attributes {
	if e.Of == "" {
		return nil
	}
	return templ.Attributes{"data-of": e.Of}
}

// finishes tells a script which draft the row takes the place of.
func (e Entry) finishes() templ.Attributes {
	if e.Finishes == "" {
		return nil
	}
	return templ.Attributes{"data-finishes": e.Finishes}
}

// by marks a text that its agent wrote.
func (e Entry) by() templ.Attributes {
	if e.Rich || e.Draft != nil || e.Piece {
		return templ.Attributes{"data-by": "agent"}
	}
	return nil
}

// piece tells a script what a row without anything to read stands for.
func (e Entry) piece() templ.Attributes {
	a := templ.Attributes{}
	if e.From > 0 {
		a["data-from"] = fmt.Sprint(e.From)
	}
	if e.Adds != "" {
		a["data-adds-to"] = e.AddsTo
	}
	return a
}

// EntryID is the id of an entry's row.
func EntryID(seq int64) string { return fmt.Sprintf("j-%d", seq) }

// Holds reports whether the row stands for an entry, or for a run that ends with it
// or reaches beyond it.
func (e Entry) Holds(seq int64) bool {
	return e.Seq == seq || e.From > 0 && e.From <= seq && seq < e.Seq
}

// Entries draws every event of the window: one row each, or one for a run of
// pieces that the window leaves out (RDR-4). It is never an error (JRN-7). An
// output is told where its call ended, and a message where it was complete; one
// that isn't stands where it began.
func Entries(w Window) []Entry {
	d := drawer{Window: w, whole: map[string]int64{}}
	bodies := make([]journal.Body, len(w.Events))
	for i := range w.Events {
		body, err := w.Events[i].Decode()
		if err != nil { // damaged: verify says so; the page stays readable
			body = &journal.Opaque{Of: w.Events[i].Kind, Raw: w.Events[i].Data}
		}
		bodies[i] = body
		if m, ok := body.(*journal.MessageCompleted); ok {
			d.whole[messageKey(m.MessageID, m.Part)] = w.Events[i].Seq
		}
	}
	out := make([]Entry, 0, len(bodies))
	for i, body := range bodies {
		ev := &w.Events[i]
		if i > 0 {
			out = appendRun(out, ev.Seq-1, ev.Time)
		}
		e := d.entry(ev, body)
		if e.Output != nil { // the same command may have been run before
			e.Output.Label += ", entry " + Number(ev.Seq)
		}
		e.Seq, e.Time, e.Kind = ev.Seq, ev.Time, string(ev.Kind)
		e.Bookkeeping = !e.Piece && bookkeeping(body)
		out = append(out, e)
	}
	out = appendRun(out, w.Through, w.Ended)
	tellPieces(out)
	return out
}

// tellPieces lets each row that is read name the pieces before it: a number that stands
// nowhere would look like a loss.
func tellPieces(rows []Entry) {
	last := int64(0)
	for i := range rows {
		e := &rows[i]
		if e.Piece {
			continue
		}
		if last > 0 && e.Seq > last+1 {
			e.With = last + 1
		}
		last = e.Seq
	}
}

// PiecesAre says what the numbers are that have no row of their own.
const PiecesAre = "Pieces of an output or of a message, or other details: each has a number, and is shown within the row that it belongs to"

// with names the pieces before the row.
func (e Entry) with() string {
	if e.With == e.Seq-1 {
		return "with " + Number(e.With)
	}
	return "with " + Number(e.With) + " to " + Number(e.Seq-1)
}

// appendRun stands for the pieces that follow the last row, up to a seq.
func appendRun(out []Entry, through, at int64) []Entry {
	if len(out) == 0 || out[len(out)-1].Seq >= through {
		return out
	}
	return append(out, Entry{Seq: through, From: out[len(out)-1].Seq + 1, Time: at, Piece: true})
}

type drawer struct {
	Window
	whole map[string]int64 // where messages stand whole, the last time
}

func textOf(t journal.Text) string {
	if t.Blob == "" {
		return t.S
	}
	return "\n[a piece of " + Bytes(t.Bytes) + " stands in the whole output]\n"
}

func (d *drawer) entry(ev *journal.Event, body journal.Body) Entry {
	if e, ok := d.sessionEntry(ev, body); ok {
		return e
	}
	if e, ok := d.promptEntry(body); ok {
		return e
	}
	if e, ok := d.turnEntry(ev, body); ok {
		return e
	}
	if e, ok := d.messageEntry(ev, body); ok {
		return e
	}
	if e, ok := d.callEntry(ev, body); ok {
		return e
	}
	if e, ok := d.permissionEntry(body); ok {
		return e
	}
	if e, ok := d.attemptEntry(body); ok {
		return e
	}
	if e, ok := d.agentEntry(ev, body); ok {
		return e
	}
	return opaqueEntry(ev)
}

// opaqueEntry is JRN-7.
func opaqueEntry(ev *journal.Event) Entry {
	var raw bytes.Buffer
	if json.Indent(&raw, ev.Data, "", "  ") != nil {
		raw.Reset()
		raw.Write(ev.Data)
	}
	return Entry{
		Class: "minor", Icon: "server",
		Title: Say("An entry of the kind ", Code(string(ev.Kind)), fmt.Sprintf(" (version %d)", ev.Version)),
		Note:  Say("this version of Holdfast does not know it"),
		Raw:   journal.Cut(raw.String(), opaqueBytes),
	}
}

// whoDid names the actor at the start of a sentence.
func (d *drawer) whoDid(id string) string {
	w := d.Viewer.Who(id)
	return strings.ToUpper(w[:1]) + w[1:]
}

func (d *drawer) sessionEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.SessionCreated:
		e := Entry{Icon: "person", Title: Say(d.whoDid(ev.Actor.ID) + " started this session"), Note: Say("agent ", Code(b.Agent), " in ", Code(b.Workspace))}
		if len(b.Settings) > 0 {
			e.Lines = []Phrase{settingsPhrase("With ", b.Settings)}
		}
		return e, true
	case *journal.SessionRenamed:
		return Entry{Class: "minor", Icon: "edit", Title: Say("Renamed to “" + Line(b.Title, 200) + "”")}, true
	case *journal.SessionArchived:
		return Entry{Icon: "done", Title: Say(d.whoDid(ev.Actor.ID) + " archived this session")}, true
	case *journal.SessionBlocked:
		return Entry{Icon: "hold", Title: Say(blockedWords(&journal.BlockInfo{Cause: b.Cause})), Lines: []Phrase{Say(b.Detail)}}, true
	case *journal.SessionUnblocked:
		return Entry{Class: "minor", Icon: "run", Title: Say("The cause is gone; the session goes on")}, true
	case *journal.SettingsChosen:
		return Entry{Icon: "person", Title: Say(d.whoDid(b.By) + " changed the agent’s settings"), Note: Say("from the next message on"), Lines: []Phrase{settingsPhrase("", b.Settings)}}, true
	case *journal.StepRecovered:
		return recoveredEntry(b), true
	}
	return Entry{}, false
}

func (d *drawer) promptEntry(body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.PromptAdmitted:
		what := " queued a message"
		if b.Delivery == journal.Steer {
			what = " sent a message, ahead of the queue"
		}
		return Entry{Class: "minor", Icon: "queue", Title: Say(d.whoDid(d.Viewer.ID) + what), Note: Say("“" + Line(textOf(b.Text), 80) + "”")}, true
	case *journal.PromptPromoted:
		note := "the turn works on it from here"
		if b.Delivery == journal.Steer {
			note = "it steers the turn from here"
		}
		if b.Begins {
			note = "it begins this turn"
		}
		if d.Untold[b.PromptID] != "" {
			note = "it had not been sent when its turn ended; it is told with the next message"
		}
		e := Entry{Class: "you", Icon: "person", Title: Say("Your message"), Note: Say(note)}
		e.prose(d.Texts[b.PromptID])
		return e, true
	case *journal.PromptWithdrawn:
		return Entry{Class: "minor", Icon: "queue", Title: Say(d.whoDid(d.Viewer.ID) + " withdrew a message")}, true
	}
	return Entry{}, false
}

// prose bounds a long text; all of it is in the export.
func (e *Entry) prose(s string) {
	e.Prose = s
	if len(s) > proseBytes {
		e.Prose = journal.Cut(s, proseBytes)
		e.Cut = int64(len(s) - proseBytes)
	}
}

func (d *drawer) turnEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.TurnStarted:
		if b.Cause == journal.CauseContinuation {
			return Entry{Class: "minor", Icon: "run", Title: Say("The turn goes on")}, true
		}
		return Entry{Class: "minor", Icon: "run", Title: Say("A turn started")}, true
	case *journal.TurnEnded:
		e := d.turnEnded(ev, b)
		if n := d.untoldOf(b.TurnID); n == 1 {
			e.Lines = append(e.Lines, Say("Its message had not been sent to the agent: it is told with the next one, or when you continue."))
		} else if n > 1 {
			e.Lines = append(e.Lines, Say(Plural(n, "message")+" of it had not been sent to the agent: they are told with the next one, or when you continue."))
		}
		return e, true
	case *journal.ContinuationRequested:
		e := Entry{Icon: "person", Title: Say(d.whoDid(ev.Actor.ID) + " continued the session")}
		if b.Anew {
			e.Title = Say(d.whoDid(ev.Actor.ID) + " started a new conversation with the agent, with a summary")
		}
		if b.Limits != nil {
			e.Note = Say(limitsText(b.Limits))
		}
		return e, true
	case *journal.StepStarted:
		if b.Step.Of == 0 { // an agent doesn't say how many there are
			return Entry{Class: "minor", Icon: "run", Title: Say("A step began"), Note: Say(Line(b.Step.Name, 160))}, true
		}
		return Entry{Class: "minor", Icon: "run", Title: Say(fmt.Sprintf("Step %d of %d: ", b.Step.Index, b.Step.Of), Word{Text: Line(b.Step.Name, 160), Strong: true})}, true
	case *journal.PlanUpdated:
		return Entry{Class: "minor", Icon: "todo", Title: Say("The plan changed"), Note: Say(planDone(b.Plan), planNow(b.Plan))}, true
	case *journal.InterruptRequested:
		when := " asked to stop at the next safe point"
		if b.Mode == journal.InterruptNow {
			when = " asked to stop now"
		}
		if b.Reason == journal.ReasonRejected {
			when = " rejected a request, which stops the turn"
		}
		if b.PromptID != "" {
			when += ", and to deliver the message sent with it then"
		}
		return Entry{Icon: "stop", Title: Say(d.whoDid(b.By) + when)}, true
	case *journal.LimitReached:
		return Entry{Icon: "stop", Title: Say("Reached the " + limitNoun(b.Limit) + " limit"), Note: Say(limitReached(b))}, true
	}
	return Entry{}, false
}

// untoldOf counts the prompts of a turn that hadn't been sent when it ended.
func (d *drawer) untoldOf(turn string) (n int) {
	for _, of := range d.Untold {
		if of == turn {
			n++
		}
	}
	return n
}

func (d *drawer) turnEnded(ev *journal.Event, b *journal.TurnEnded) Entry {
	switch b.Outcome {
	case journal.Completed:
		return Entry{Icon: "done", Title: Say("The turn finished")}
	case journal.Failed:
		return Entry{Icon: "fail", Class: "bad", Title: Say("The turn failed"), Lines: []Phrase{Say(b.Reason)}}
	case journal.LimitReach:
		return Entry{Icon: "stop", Title: Say("The turn ended at its " + limitNoun(b.Limit) + " limit")}
	case journal.Interrupted:
		return Entry{Icon: "stop", Title: Say("The turn was ended, because the server was stopped")}
	case journal.Stopped, journal.NoOutcomeYet:
	}
	by, done := "", ""
	if b.Done {
		done = ", when it was done"
	}
	if ev.Actor.Type == journal.ActorUser {
		by = " by " + d.Viewer.Who(ev.Actor.ID)
	}
	return Entry{Icon: "stop", Title: Say("The turn was stopped" + by + stopReason(&journal.Turn{Reason: b.Reason}) + done)}
}

func limitsText(l *journal.Limits) string {
	var parts []string
	for _, limit := range []string{"steps", "wall_s", "tokens", "cost_usd"} {
		if (limit == "steps" && l.Steps > 0) || (limit == "wall_s" && l.WallS > 0) || (limit == "tokens" && l.Tokens > 0) || (limit == "cost_usd" && l.CostUSD > 0) {
			parts = append(parts, limitNoun(limit)+" limit now "+limitValue(limit, *l))
		}
	}
	return strings.Join(parts, ", ")
}

func limitReached(b *journal.LimitReached) string {
	l := journal.Limits{Steps: int(b.Value), WallS: b.Value, Tokens: b.Value, CostUSD: float64(b.Value)}
	return limitValue(b.Limit, l)
}

func planDone(plan []journal.PlanItem) string {
	done := 0
	for _, p := range plan {
		if p.State == journal.PlanDone {
			done++
		}
	}
	return fmt.Sprintf("%d of %d done", done, len(plan))
}

// planNow names the line that the plan is at, with its state: that is what has changed.
func planNow(plan []journal.PlanItem) Phrase {
	for _, p := range slices.Backward(plan) {
		if planClass(p.State) == "now" {
			return Say("; ", Quoted(p.Title, 80), ": "+planWords(p))
		}
	}
	return nil
}

func (d *drawer) permissionEntry(body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.PermissionAsked:
		p := RequestPayload(&journal.Request{Metadata: b.Metadata}, d.Calls[b.Tool.CallID])
		e := Entry{Icon: "ask", Class: "ask", Title: Say("Asked for a decision: " + asks(b.Permission, p.Tool, b.Resources)), Lines: []Phrase{Say(Code(p.Title()), " ", Link("/permissions/"+b.ID, "Read the request"))}}
		if p.Again != "" {
			e.Title, e.Lines = Say("Asked for a decision once more: "+asks(b.Permission, p.Tool, b.Resources)), append(e.Lines, Say(Line(p.Again, 1000)))
		}
		return e, true
	case *journal.PermissionReplied:
		did := " allowed it once"
		switch b.Reply {
		case journal.ReplyReject:
			did = " denied it"
		case journal.ReplyAlways:
			did = " allowed it, and what is like it"
		case journal.ReplyOnce:
		}
		e := Entry{Icon: "person", Of: b.ID, Title: Say(d.whoDid(b.By) + did), Note: Say(Link("/permissions/"+b.ID, "Read the request"))}
		if b.Others > 0 {
			e.Lines = append(e.Lines, Say(stillAsked(b.Others)))
		}
		e.prose(b.Message)
		return e, true
	case *journal.PermissionCancelled:
		return Entry{Class: "minor", Icon: "ask", Of: b.ID, Title: Say("A request ended without an answer"), Note: Say(journal.WhyEnded(b.Reason))}, true
	}
	return Entry{}, false
}

// stillAsked says what a call that was allowed waits for: it needs all that it asked (PER-1).
func stillAsked(others int) string {
	if others == 1 {
		return "Another request for the same call waited still: it starts when that is allowed, too."
	}
	return fmt.Sprintf("%d other requests for the same call waited still: it starts when they are allowed, too.", others)
}

func thenText(t journal.Then) string {
	if t == journal.ThenContinue {
		return "and chose to continue"
	}
	return "and chose to stay stopped"
}
