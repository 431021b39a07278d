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
	SpanStopped SpanState = "stopped" // between two turns, or something was missing
)

// Span is a while in one state.
type Span struct {
	State    SpanState
	From, To int64
}

// Spans tells the life of a session from its events, in order, until a time, or
// until its last turn ended if nothing is open since. Of the kinds that it knows
// the list may leave out none, except the oldest; of others it needs only the last
// word of the execution that each step.recovered names, and the call.settled of
// the calls that it settled.
func Spans(events []journal.Event, until int64) []Span {
	var tr tracer
	ended := recordedEnds(events)
	for i := range events {
		ev := &events[i]
		body, err := ev.Decode()
		if err != nil { // damaged: verify says so
			continue
		}
		if b, ok := body.(*journal.StepRecovered); ok && tr.open {
			tr.lost(knownUntil(b, ev.Time, ended))
		}
		tr.to(ev.Time)
		tr.apply(ev.Time, body)
	}
	if len(events) > 0 {
		tr.to(until)
	}
	return tr.upToLastTurn()
}

// recordedEnds are the ends of calls by their own records.
func recordedEnds(events []journal.Event) map[string]int64 {
	ended := map[string]int64{}
	for i := range events {
		if events[i].Kind != journal.KindCallSettled {
			continue
		}
		if body, err := events[i].Decode(); err == nil {
			if b, ok := body.(*journal.CallSettled); ok {
				ended[b.CallID] = b.EndedAt
			}
		}
	}
	return ended
}

// knownUntil tells until when it is known what went on while the worker was lost:
// to the recovery if something ran on that is followed again, or to the recorded
// end of what had ended by itself; at least until the worker last said that it lived,
// which is all if the outcome of something is unknown, or nothing ran. 0: nobody
// noted that, so not beyond its last entry.
func knownUntil(b *journal.StepRecovered, recovered int64, ended map[string]int64) int64 {
	alive := min(b.AliveAt, recovered)
	if slices.ContainsFunc(b.Attempts, func(a journal.RecoveredAttempt) bool { return a.Became == journal.AttemptIsUnknown }) {
		return alive
	}
	known := alive
	if slices.ContainsFunc(b.Attempts, func(a journal.RecoveredAttempt) bool { return a.Became == journal.AttemptIsAdopted && !a.Ended }) {
		known = recovered
	}
	for _, c := range b.Calls {
		switch c.Became {
		case journal.CallIsUnknown:
			return alive
		case journal.CallIsAdopted:
			known = recovered
		default:
			known = max(known, min(ended[c.CallID], recovered)) // the clock of its host may be another
		}
	}
	return known
}

// tracer folds events into spans. The clock of a journal doesn't go back, or the
// span before is cut to nothing.
type tracer struct {
	spans                     []Span
	at, ended                 int64 // ended: when the last turn did
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

// lost makes the time from the last word, or from when else it was still known what
// went on, unknown until the next event is applied.
func (tr *tracer) lost(known int64) {
	tr.to(known)
	tr.recovering = true
}

// upToLastTurn leaves out the time in which nothing was open any more.
func (tr *tracer) upToLastTurn() []Span {
	n := len(tr.spans)
	if tr.open || n == 0 || tr.spans[n-1].State != SpanStopped {
		return tr.spans
	}
	if last := &tr.spans[n-1]; last.From < tr.ended {
		last.To = tr.ended
		return tr.spans
	}
	return tr.spans[:n-1]
}

func (tr *tracer) apply(at int64, body journal.Body) {
	tr.recovering = false
	switch b := body.(type) {
	case *journal.TurnStarted:
		tr.open = true
	case *journal.TurnEnded:
		tr.open, tr.ended = false, at
	case *journal.SessionBlocked:
		tr.blocked = b.Cause != journal.BlockProcess && b.Cause != journal.BlockShim // of which something runs, maybe
	case *journal.SessionUnblocked, *journal.ContinuationRequested:
		tr.blocked = false
	case *journal.PermissionAsked:
		tr.open = true // of a turn that began before the first event that is given
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

// Empty reports whether there is nothing to draw: a life of no state for a second.
func (t TraceView) Empty() bool {
	for _, ms := range t.totals() {
		if ms >= 1000 {
			return false
		}
	}
	return true
}

func (t TraceView) from() int64 { return t.Spans[0].From }

func (t TraceView) to() int64 { return t.Spans[len(t.Spans)-1].To }

func (t TraceView) totals() map[SpanState]int64 {
	total := map[SpanState]int64{}
	for _, s := range t.Spans {
		total[s.State] += s.To - s.From
	}
	return total
}

// Caption says in words what the line shows, of what took a second at least.
func (t TraceView) Caption() Phrase {
	total := t.totals()
	var parts []string
	for _, name := range spanNames {
		if total[name.state] >= 1000 {
			parts = append(parts, name.verb+" "+Ago(total[name.state]))
		}
	}
	if stamp := Stamp(t.to(), t.Now, false); stamp == Stamp(t.from(), t.Now, false) {
		return Say(At(t.from()), ": "+strings.Join(parts, ", ")+".")
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
	{SpanStopped, "nothing under way", "Nothing under way", "t-stop"},
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

// ticks are at most eight whole hours, or six days (UTC): on a narrow screen more
// would run into each other.
func (t TraceView) ticks() []tick {
	from, whole := t.from(), t.to()-t.from()
	step, layout := int64(0), "15:04"
	for _, hours := range []int64{1, 2, 3, 6, 24, 48, 7 * 24, 30 * 24, 365 * 24, 10 * 365 * 24} {
		step = hours * hour
		most := int64(8)
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
		if x > 90 || len(out) == 8 { // its label would be cut
			break
		}
		out = append(out, tick{fmt.Sprintf("%.2f%%", x), fmt.Sprintf("%.2f%%", x+0.5), time.UnixMilli(at).UTC().Format(layout)})
	}
	return out
}
