package components

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	Outputs   map[string]Ends
	Texts     map[string]string // of promoted prompts, by prompt
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
	Output *Output
	Live   *LiveOutput // of the call that this entry started
	Piece  bool        // a piece of output: a row without anything to read, since its call's box shows it
	Raw    string      // of an event that this build doesn't know
	Of     string      // the request, call or attempt whose card this entry answers
}

// of ties a row to the card that it answers: a script tells by it what became of the card.
func (e Entry) of() templ.Attributes {
	if e.Of == "" {
		return nil
	}
	return templ.Attributes{"data-of": e.Of}
}

// EntryID is the id of an entry's row.
func EntryID(seq int64) string { return fmt.Sprintf("j-%d", seq) }

// Entries draws every event of the window, one row each (RDR-4): never an error
// (JRN-7). Pieces of one message are told where they end; those of an output are
// rows without text.
func Entries(w Window) []Entry {
	d := drawer{Window: w, pieces: map[string]*pieces{}}
	bodies := make([]journal.Body, len(w.Events))
	for i := range w.Events {
		if w.Events[i].Kind == journal.KindCallOutput {
			continue
		}
		body, err := w.Events[i].Decode()
		if err != nil { // damaged: verify says so; the page stays readable
			body = &journal.Opaque{Of: w.Events[i].Kind, Raw: w.Events[i].Data}
		}
		bodies[i] = body
		d.collect(w.Events[i].Seq, body)
	}
	out := make([]Entry, len(bodies))
	for i, body := range bodies {
		ev := &w.Events[i]
		e := Entry{Piece: true}
		if body != nil {
			e = d.entry(ev, body)
			if e.Output != nil { // the same command may have been run before
				e.Output.Label += ", entry " + Number(ev.Seq)
			}
		}
		e.Seq, e.Time, e.Kind = ev.Seq, ev.Time, string(ev.Kind)
		out[i] = e
	}
	return out
}

type drawer struct {
	Window
	pieces map[string]*pieces
}

// pieces are the parts of one output or message that stand in the window, and
// the seq of the row that shows them.
type pieces struct {
	text  strings.Builder
	home  int64
	final bool
}

func (d *drawer) piece(id string) *pieces {
	if d.pieces[id] == nil {
		d.pieces[id] = &pieces{}
	}
	return d.pieces[id]
}

func (d *drawer) collect(seq int64, body journal.Body) {
	add := func(id string, text journal.Text) {
		p := d.piece(id)
		p.text.WriteString(textOf(text))
		if !p.final {
			p.home = seq
		}
	}
	switch b := body.(type) {
	case *journal.MessageDelta:
		add(b.MessageID, b.Text)
	case *journal.MessageCompleted:
		d.piece(b.MessageID).final = true
	}
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
		return Entry{Icon: "person", Title: Say(d.whoDid(ev.Actor.ID) + " started this session"), Note: Say("agent ", Code(b.Agent), " in ", Code(b.Workspace))}, true
	case *journal.SessionRenamed:
		return Entry{Class: "minor", Icon: "edit", Title: Say("Renamed to “" + Line(b.Title, 200) + "”")}, true
	case *journal.SessionArchived:
		return Entry{Icon: "done", Title: Say(d.whoDid(ev.Actor.ID) + " archived this session")}, true
	case *journal.SessionBlocked:
		return Entry{Icon: "hold", Title: Say(blockedWords(&journal.BlockInfo{Cause: b.Cause})), Lines: []Phrase{Say(b.Detail)}}, true
	case *journal.SessionUnblocked:
		return Entry{Class: "minor", Icon: "run", Title: Say("The cause is gone; the session goes on")}, true
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
			what = " sent a message for this turn"
		}
		return Entry{Class: "minor", Icon: "queue", Title: Say(d.whoDid(d.Viewer.ID) + what), Note: Say("“" + Line(textOf(b.Text), 80) + "”")}, true
	case *journal.PromptPromoted:
		note := "delivered to the agent"
		if b.Delivery == journal.Steer {
			note = "steered the turn"
		}
		e := Entry{Class: "you", Icon: "person", Title: Say(d.whoDid(d.Viewer.ID)), Note: Say(note)}
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
		return d.turnEnded(ev, b), true
	case *journal.ContinuationRequested:
		e := Entry{Icon: "person", Title: Say(d.whoDid(ev.Actor.ID) + " continued the session")}
		if b.Limits != nil {
			e.Note = Say(limitsText(b.Limits))
		}
		return e, true
	case *journal.StepStarted:
		return Entry{Class: "minor", Icon: "run", Title: Say(fmt.Sprintf("Step %d of %d: ", b.Step.Index, b.Step.Of), Word{Text: Line(b.Step.Name, 160), Strong: true})}, true
	case *journal.PlanUpdated:
		return Entry{Class: "minor", Icon: "todo", Title: Say("The plan changed"), Note: Say(planDone(b.Plan))}, true
	case *journal.InterruptRequested:
		when := " asked to stop at the next safe point"
		if b.Mode == journal.InterruptNow {
			when = " asked to stop now"
		}
		return Entry{Icon: "stop", Title: Say(d.whoDid(b.By) + when)}, true
	case *journal.LimitReached:
		return Entry{Icon: "stop", Title: Say("Reached the " + limitNoun(b.Limit) + " limit"), Note: Say(limitReached(b))}, true
	}
	return Entry{}, false
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
	by := ""
	if ev.Actor.Type == journal.ActorUser {
		by = " by " + d.Viewer.Who(ev.Actor.ID)
	}
	return Entry{Icon: "stop", Title: Say("The turn was stopped" + by + stopReason(&journal.Turn{Reason: b.Reason}))}
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

func (d *drawer) messageEntry(ev *journal.Event, body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.MessageDelta:
		p := d.pieces[b.MessageID]
		if p.final || p.home != ev.Seq {
			return Entry{Class: "minor", Icon: "agent", Title: Say("The agent wrote " + Bytes(int64(len(textOf(b.Text)))))}, true
		}
		e := Entry{Class: "live", Icon: "agent", Title: Say("Agent"), Note: Say("is writing; this is not complete")}
		e.prose(p.text.String())
		return e, true
	case *journal.MessageCompleted:
		e := Entry{Icon: "agent", Title: Say("Agent"), Rich: true}
		switch b.Part {
		case journal.PartReasoning:
			e.Note = Say("reasoning")
		case journal.PartNote:
			e.Note = Say("note")
		case journal.PartText:
		}
		e.prose(textOf(b.Text))
		return e, true
	}
	return Entry{}, false
}

func (d *drawer) permissionEntry(body journal.Body) (Entry, bool) {
	switch b := body.(type) {
	case *journal.PermissionAsked:
		p := RequestPayload(&journal.Request{Metadata: b.Metadata}, d.Calls[b.Tool.CallID])
		return Entry{Icon: "ask", Class: "ask", Title: Say("Asked for a decision: " + asks(b.Permission)), Lines: []Phrase{Say(Code(p.Title()), " ", Link("/permissions/"+b.ID, "Read the request"))}}, true
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
		e.prose(b.Message)
		return e, true
	case *journal.PermissionCancelled:
		return Entry{Class: "minor", Icon: "ask", Of: b.ID, Title: Say("A request ended without an answer"), Note: Say(b.Reason)}, true
	}
	return Entry{}, false
}

func (d *drawer) attemptEntry(body journal.Body) (Entry, bool) {
	minor := func(text string, note ...any) (Entry, bool) {
		return Entry{Class: "minor", Icon: "agent", Title: Say(text), Note: Say(note...)}, true
	}
	switch b := body.(type) {
	case *journal.AttemptPrepared:
		return minor("A request to a model was prepared", Code(b.Model))
	case *journal.AttemptDispatched:
		return minor("The request was sent")
	case *journal.AttemptReceiving:
		return minor("The answer began")
	case *journal.AttemptSettled:
		return minor("The answer is complete", fmt.Sprintf("%d tokens in, %d out", b.Usage.InputTokens, b.Usage.OutputTokens))
	case *journal.AttemptFailed:
		return Entry{Icon: "fail", Title: Say("The provider did not take the request"), Lines: []Phrase{Say(b.Error)}}, true
	case *journal.AttemptUnknown:
		return Entry{Icon: "unk", Class: "unk", Title: Say("What became of the request to the model is not known"), Note: Say("it was not sent again")}, true
	case *journal.AttemptResolved:
		did := " chose to send the request again"
		if b.Outcome == journal.AttemptAbandon {
			did = " gave the request up"
		}
		return Entry{Icon: "person", Of: b.AttemptID, Title: Say(d.whoDid(b.By) + did), Note: Say(thenText(b.Then))}, true
	}
	return Entry{}, false
}

func thenText(t journal.Then) string {
	if t == journal.ThenContinue {
		return "and chose to continue"
	}
	return "and chose to stay stopped"
}
