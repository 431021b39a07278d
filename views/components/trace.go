package components

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/journal"
)

// SpanState is what a session did for a while.
type SpanState string

// The states of a trace.
const (
	SpanWorking SpanState = "working"
	SpanWaiting SpanState = "waiting" // for people
	SpanUnknown SpanState = "unknown" // nobody knows what it did, or what became of what it did
	SpanStopped SpanState = "stopped" // no turn was open, or something was missing
)

// Span is a while in one state.
type Span struct {
	State    SpanState
	From, To int64
}

// Spans tells the life of a session from its events, in order, until a time. Of
// the kinds it knows the list may leave out none; of others it needs only the one
// before each step.recovered, which is the last word of what was lost then.
func Spans(events []journal.Event, until int64) []Span {
	var tr tracer
	last := int64(0)
	for i := range events {
		ev := &events[i]
		body, err := ev.Decode()
		if err != nil { // damaged: verify says so
			continue
		}
		if b, ok := body.(*journal.StepRecovered); ok && tr.open && !ranOn(b) {
			tr.lost(last)
		}
		tr.to(ev.Time)
		tr.apply(body)
		last = ev.Time
	}
	if len(events) > 0 {
		tr.to(until)
	}
	return tr.spans
}

// ranOn reports that something went on while the worker was lost, and is followed
// again: what was done meanwhile is known.
func ranOn(b *journal.StepRecovered) bool {
	return slices.ContainsFunc(b.Calls, func(c journal.RecoveredCall) bool { return c.Became == journal.CallIsAdopted })
}

// tracer folds events into spans. The clock of a journal doesn't go back, or the
// span before is cut to nothing.
type tracer struct {
	spans                     []Span
	at                        int64
	open, blocked, recovering bool
	pending, unknown          map[string]bool
}

func (tr *tracer) state() SpanState {
	switch {
	case tr.recovering, len(tr.unknown) > 0:
		return SpanUnknown
	case len(tr.pending) > 0:
		return SpanWaiting
	case tr.open && !tr.blocked:
		return SpanWorking
	}
	return SpanStopped
}

// to extends the state until a time.
func (tr *tracer) to(t int64) {
	if tr.at == 0 {
		tr.at = t
	}
	if t <= tr.at {
		return
	}
	s := Span{tr.state(), tr.at, t}
	if n := len(tr.spans); n > 0 && tr.spans[n-1].State == s.State {
		tr.spans[n-1].To = t
	} else {
		tr.spans = append(tr.spans, s)
	}
	tr.at = t
}

// lost makes the time from the last word on unknown, until the next event is applied.
func (tr *tracer) lost(from int64) {
	tr.to(from)
	tr.recovering = true
}

func (tr *tracer) apply(body journal.Body) {
	tr.recovering = false
	switch b := body.(type) {
	case *journal.TurnStarted:
		tr.open = true
	case *journal.TurnEnded:
		tr.open = false
	case *journal.SessionBlocked:
		tr.blocked = true
	case *journal.SessionUnblocked, *journal.ContinuationRequested:
		tr.blocked = false
	case *journal.PermissionAsked:
		mark(&tr.pending, b.ID)
	case *journal.PermissionReplied:
		delete(tr.pending, b.ID)
	case *journal.PermissionCancelled:
		delete(tr.pending, b.ID)
	case *journal.CallUnknown:
		mark(&tr.unknown, b.CallID)
	case *journal.CallResolved:
		delete(tr.unknown, b.CallID)
	case *journal.AttemptUnknown:
		mark(&tr.unknown, b.AttemptID)
	case *journal.AttemptResolved:
		delete(tr.unknown, b.AttemptID)
	}
}

func mark(set *map[string]bool, id string) {
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[id] = true
}

// TraceView is a session's life on one line.
type TraceView struct {
	Spans []Span
	Now   int64
}

// NewTrace makes the trace of a session until now.
func NewTrace(events []journal.Event, now int64) TraceView {
	return TraceView{Spans: Spans(events, now), Now: now}
}

// Empty reports whether there is nothing to draw: a life of less than a second.
func (t TraceView) Empty() bool { return len(t.Spans) == 0 || t.to()-t.from() < 1000 }

func (t TraceView) from() int64 { return t.Spans[0].From }

func (t TraceView) to() int64 { return t.Spans[len(t.Spans)-1].To }

// Caption says in words what the line shows.
func (t TraceView) Caption() Phrase {
	total := map[SpanState]int64{}
	for _, s := range t.Spans {
		total[s.State] += s.To - s.From
	}
	var parts []string
	for _, name := range spanNames {
		if total[name.state] > 0 {
			parts = append(parts, name.verb+" "+Ago(total[name.state]))
		}
	}
	return Say(At(t.from()), " to ", At(t.to()), ": "+strings.Join(parts, ", ")+".")
}

// spanNames are the states in the order in which they are told, with their class.
var spanNames = []struct {
	state              SpanState
	verb, label, class string
}{
	{SpanWorking, "worked", "Working", "t-work"},
	{SpanWaiting, "waited for people", "Waiting for a person", "t-wait"},
	{SpanUnknown, "unknown", "Not known", "t-unk"},
	{SpanStopped, "stopped", "Nothing under way", "t-stop"},
}

func spanClass(s SpanState) string {
	for _, name := range spanNames {
		if name.state == s {
			return name.class
		}
	}
	return ""
}

// traceSlots bounds what is drawn, and with that the width of what is short.
const traceSlots = 240

// bar is a piece of the line, in percent.
type bar struct{ Class, X, Width string }

// bars draws the spans into slots: of what falls into one, what a person should
// see most is kept.
func (t TraceView) bars() []bar {
	from, whole := t.from(), t.to()-t.from()
	var slots [traceSlots]SpanState
	for _, s := range t.Spans {
		first := int((s.From - from) * traceSlots / whole)
		end := int(((s.To-from)*traceSlots + whole - 1) / whole)
		for i := first; i < end; i++ {
			if rank(s.State) >= rank(slots[i]) {
				slots[i] = s.State
			}
		}
	}
	var out []bar
	for i := 0; i < traceSlots; {
		n := i
		for n < traceSlots && slots[n] == slots[i] {
			n++
		}
		out = append(out, bar{spanClass(slots[i]), percent(i), percent(n - i)})
		i = n
	}
	return out
}

func rank(s SpanState) int {
	switch s {
	case SpanUnknown:
		return 4
	case SpanWaiting:
		return 3
	case SpanWorking:
		return 2
	case SpanStopped:
		return 1
	}
	return 0
}

func percent(slots int) string { return fmt.Sprintf("%.2f%%", float64(slots)*100/traceSlots) }

// tick is an hour or a day below the line.
type tick struct{ X, TextX, Label string }

const (
	hour = 3600_000
	day  = 24 * hour
)

// ticks are at most twelve whole hours, or six days (UTC): on a narrow screen more
// would run into each other.
func (t TraceView) ticks() []tick {
	from, whole := t.from(), t.to()-t.from()
	step, layout := int64(0), "15"
	for _, hours := range []int64{1, 2, 3, 6, 24, 48, 7 * 24, 30 * 24, 365 * 24, 10 * 365 * 24} {
		step = hours * hour
		most := int64(12)
		if step >= day {
			layout, most = "2 Jan", 6
		}
		if whole/step < most {
			break
		}
	}
	var out []tick
	for at := (from/step + 1) * step; at < t.to(); at += step {
		x := float64(at-from) * 100 / float64(whole)
		if x > 93 || len(out) == 12 { // its label would be cut
			break
		}
		out = append(out, tick{fmt.Sprintf("%.2f%%", x), fmt.Sprintf("%.2f%%", x+0.5), time.UnixMilli(at).UTC().Format(layout)})
	}
	return out
}
