package components_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/views/components"
)

// at is an event at a minute of the tests' day.
type at struct {
	minute int64
	body   journal.Body
}

func eventsAt(t *testing.T, list ...at) []journal.Event {
	t.Helper()
	var out []journal.Event
	for i, e := range list {
		data, err := journal.Encode(e.body)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, journal.Event{Seq: int64(i + 1), Kind: e.body.Kind(), Version: 1, Time: minute(e.minute), Data: json.RawMessage(data)})
	}
	return out
}

// minute counts from 264 minutes before now: 09:02 to 13:26.
func minute(n int64) int64 { return now - (264-n)*60_000 }

func TestSpans(t *testing.T) {
	t.Parallel()
	start, end := &journal.TurnStarted{TurnID: "trn_1"}, &journal.TurnEnded{TurnID: "trn_1", Outcome: journal.Completed}
	ask, other := &journal.PermissionAsked{ID: "per_1"}, &journal.PermissionAsked{ID: "per_2"}
	reply := &journal.PermissionReplied{ID: "per_1", Reply: journal.ReplyOnce}
	unknown, resolved := &journal.CallUnknown{CallID: "call_1"}, &journal.CallResolved{CallID: "call_1"}
	dispatched, output := &journal.CallDispatched{CallID: "call_2", N: 1}, &journal.CallOutput{CallID: "call_2"}
	adopted := &journal.StepRecovered{Calls: []journal.RecoveredCall{{CallID: "call_2", Became: journal.CallIsAdopted}}}
	settles := &journal.StepRecovered{Calls: []journal.RecoveredCall{{CallID: "call_2", Became: journal.CallSucceeded}}}
	record := func(m int64) *journal.CallSettled {
		return &journal.CallSettled{CallID: "call_2", State: journal.CallSucceeded, StartedAt: minute(5), EndedAt: minute(m)}
	}
	for name, tt := range map[string]struct {
		events []at
		want   string
	}{
		"nothing":                 {nil, ""},
		"created":                 {[]at{{0, &journal.SessionCreated{}}}, ""},
		"working":                 {[]at{{0, start}}, "working 264"},
		"ended":                   {[]at{{0, start}, {100, end}}, "working 100"},
		"two turns":               {[]at{{0, start}, {50, end}, {60, start}, {70, end}}, "working 50, stopped 10, working 10"},
		"asked and answered":      {[]at{{0, start}, {10, ask}, {40, reply}, {50, end}}, "working 10, waiting 30, working 10"},
		"asked twice":             {[]at{{0, start}, {10, ask}, {20, other}, {30, reply}, {40, &journal.PermissionCancelled{ID: "per_2"}}}, "working 10, waiting 30, working 224"},
		"still asked":             {[]at{{0, start}, {10, ask}}, "working 10, waiting 254"},
		"rejected":                {[]at{{0, start}, {10, ask}, {20, &journal.PermissionReplied{ID: "per_1", Reply: journal.ReplyReject}}, {20, end}}, "working 10, waiting 10"},
		"lost and resolved":       {[]at{{0, start}, {10, &journal.CallDispatched{CallID: "call_1", N: 1}}, {40, &journal.StepRecovered{}}, {40, unknown}, {60, resolved}}, "working 10, unknown 50, working 204"},
		"resolved with stay":      {[]at{{0, start}, {10, unknown}, {20, resolved}, {20, end}}, "working 10, unknown 10"},
		"continued":               {[]at{{0, start}, {10, end}, {30, &journal.ContinuationRequested{}}, {30, start}, {40, end}}, "working 10, stopped 20, working 10"},
		"lost and adopted":        {[]at{{0, start}, {5, &journal.MessageDelta{}}, {10, &journal.StepRecovered{Calls: []journal.RecoveredCall{{Became: journal.CallIsAdopted}}}}, {20, end}}, "working 20"},
		"nothing was lost":        {[]at{{0, start}, {5, &journal.MessageDelta{}}, {10, &journal.StepRecovered{}}, {20, end}}, "working 5, unknown 5, working 10"},
		"lost twice, adopted":     {[]at{{0, start}, {5, dispatched}, {10, adopted}, {30, output}, {50, adopted}, {60, end}}, "working 60"},
		"lost after adoption":     {[]at{{0, start}, {5, dispatched}, {10, adopted}, {30, output}, {50, &journal.StepRecovered{}}, {60, end}}, "working 30, unknown 20, working 10"},
		"ended by itself":         {[]at{{0, start}, {5, dispatched}, {10, adopted}, {30, output}, {50, settles}, {50, record(45)}, {60, end}}, "working 45, unknown 5, working 10"},
		"ended by another clock":  {[]at{{0, start}, {5, dispatched}, {50, settles}, {50, record(70)}, {60, end}}, "working 60"},
		"ended, nobody said when": {[]at{{0, start}, {5, dispatched}, {50, settles}, {60, end}}, "working 5, unknown 45, working 10"},
		"one ended, one unknown":  {[]at{{0, start}, {5, dispatched}, {50, &journal.StepRecovered{Calls: append(slices.Clone(settles.Calls), journal.RecoveredCall{CallID: "call_1", Became: journal.CallIsUnknown})}}, {50, record(45)}, {50, unknown}, {60, resolved}}, "working 5, unknown 55, working 204"},
		"adopted, attempt lost":   {[]at{{0, start}, {5, dispatched}, {10, &journal.StepRecovered{Calls: adopted.Calls, Attempts: []journal.RecoveredAttempt{{AttemptID: "att_1", Became: journal.AttemptIsUnknown}}}}, {20, end}}, "working 5, unknown 5, working 10"},
		"an agent was adopted":    {[]at{{0, start}, {5, &journal.MessageDelta{}}, {10, &journal.StepRecovered{Attempts: []journal.RecoveredAttempt{{AttemptID: "att_1", Became: journal.AttemptIsAdopted}}}}, {20, end}}, "working 20"},
		"known to have lived":     {[]at{{0, start}, {5, dispatched}, {50, &journal.StepRecovered{AliveAt: minute(30)}}, {60, end}}, "working 30, unknown 20, working 10"},
		"lived, and unknown":      {[]at{{0, start}, {5, dispatched}, {50, &journal.StepRecovered{AliveAt: minute(30), Calls: []journal.RecoveredCall{{CallID: "call_1", Became: journal.CallIsUnknown}}}}, {50, unknown}, {60, resolved}}, "working 30, unknown 30, working 204"},
		"lived, attempt lost":     {[]at{{0, start}, {50, &journal.StepRecovered{AliveAt: minute(30), Attempts: []journal.RecoveredAttempt{{AttemptID: "att_1", Became: journal.AttemptIsUnknown}}}}, {60, end}}, "working 30, unknown 20, working 10"},
		"lived longer than ended": {[]at{{0, start}, {5, dispatched}, {50, &journal.StepRecovered{AliveAt: minute(47), Calls: settles.Calls}}, {50, record(45)}, {60, end}}, "working 47, unknown 3, working 10"},
		"lived before its word":   {[]at{{0, start}, {40, output}, {50, &journal.StepRecovered{AliveAt: minute(30)}}, {60, end}}, "working 40, unknown 10, working 10"},
		"lived by another clock":  {[]at{{0, start}, {50, &journal.StepRecovered{AliveAt: minute(70)}}, {60, end}}, "working 60"},
		"waited while it lived":   {[]at{{0, start}, {10, ask}, {50, &journal.StepRecovered{AliveAt: minute(30)}}, {60, reply}}, "working 10, waiting 20, unknown 20, waiting 10, working 204"},
		"blocked, then ended":     {[]at{{0, start}, {10, &journal.SessionBlocked{}}, {20, end}}, "working 10, stopped 10"},
		"of a turn from before":   {[]at{{0, ask}, {10, reply}}, "waiting 10, working 254"},
		"attempt":                 {[]at{{0, start}, {10, &journal.AttemptUnknown{AttemptID: "att_1"}}, {20, &journal.AttemptResolved{AttemptID: "att_1"}}}, "working 10, unknown 10, working 244"},
		"call and attempt":        {[]at{{0, start}, {10, unknown}, {15, &journal.AttemptUnknown{AttemptID: "att_1"}}, {20, resolved}, {30, &journal.AttemptResolved{AttemptID: "att_1"}}, {30, end}}, "working 10, unknown 20"},
		"blocked":                 {[]at{{0, start}, {10, &journal.SessionBlocked{}}, {20, &journal.SessionUnblocked{}}}, "working 10, stopped 10, working 244"},
		"a clock that went back":  {[]at{{10, start}, {5, ask}, {20, reply}}, "waiting 10, working 244"},
	} {
		var got []string
		for _, s := range components.Spans(eventsAt(t, tt.events...), now) {
			got = append(got, fmt.Sprintf("%s %d", s.State, (s.To-s.From)/60_000))
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, ", "), tt.want)
		}
	}
	damaged := eventsAt(t, at{0, start}, at{10, end})
	damaged[1].Data = json.RawMessage(`{"outcome":7}`)
	if got := components.Spans(damaged, now); len(got) != 1 || got[0].State != components.SpanWorking {
		t.Errorf("a damaged event gives %v", got)
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	events := eventsAt(t, at{0, &journal.TurnStarted{}}, at{100, &journal.PermissionAsked{ID: "per_1"}}, at{180, &journal.PermissionReplied{ID: "per_1"}},
		at{200, &journal.CallUnknown{CallID: "call_1"}}, at{212, &journal.CallResolved{CallID: "call_1"}}, at{212, &journal.TurnEnded{}}, at{236, &journal.TurnStarted{}}, at{264, &journal.TurnEnded{}})
	doc := render(t, components.Trace(components.NewTrace(events, now)))
	if got, want := text(doc.Find("figure.trace > figcaption")), "09:02 to 13:26: worked 2 h 28 min, waited for people 1 h 20 min, unknown 12 min, nothing under way 24 min."; got != want {
		t.Errorf("the caption says %q, want %q", got, want)
	}
	svg := doc.Find("svg[aria-hidden=true]")
	if svg.Length() != 1 || doc.Find("[style]").Length() != 0 || doc.Find("figcaption time").Length() != 2 {
		t.Error("the graphic isn't hidden from those who can't see it, or styles itself, or has no times")
	}
	var classes []string
	svg.Find("rect[x]").Each(func(_ int, r *goquery.Selection) { classes = append(classes, r.AttrOr("class", "")) })
	if want := []string{"t-work", "t-wait", "t-work", "t-unk", "t-stop", "t-work"}; !slices.Equal(classes, want) {
		t.Errorf("the bars are %v, want %v", classes, want)
	}
	if got := text(svg.Find("text")); got != "10:0011:0012:00" {
		t.Errorf("the hours are %q", got)
	}
	if html, _ := render(t, components.Trace(components.TraceView{Now: now})).Find("body").Html(); html != "" {
		t.Errorf("a session without a life draws %q", html)
	}
}

// A long life with many turns is a line like any other; what is short stays visible.
func TestTrace_IsBounded(t *testing.T) {
	t.Parallel()
	var list []at
	for i := range int64(20_000) {
		list = append(list, at{i * 10, &journal.TurnStarted{}}, at{i*10 + 5, &journal.TurnEnded{}})
	}
	list = append(list, at{200_000, &journal.CallUnknown{CallID: "call_1"}}, at{200_001, &journal.CallResolved{CallID: "call_1"}})
	doc := render(t, components.Trace(components.NewTrace(eventsAt(t, list...), minute(300_000))))
	if n := doc.Find("rect[x]").Length(); n > 240 {
		t.Errorf("%d bars", n)
	}
	if n := doc.Find("text").Length(); n == 0 || n > 12 {
		t.Errorf("%d times below the line", n)
	}
	if doc.Find("rect.t-unk").Length() != 1 {
		t.Error("a minute that nobody knows of isn't seen")
	}
}

// A life within one minute names that minute once.
func TestTrace_OfOneMinute(t *testing.T) {
	t.Parallel()
	list := eventsAt(t, at{264, &journal.TurnStarted{}}, at{264, &journal.TurnEnded{}})
	list[1].Time += 28_000
	if got, want := text(render(t, components.Trace(components.NewTrace(list, now+28_000))).Find("figcaption")), "13:26: worked 28 s."; got != want {
		t.Errorf("the caption says %q, want %q", got, want)
	}
}

func TestAwayRow(t *testing.T) {
	t.Parallel()
	row := render(t, components.AwayRow(now-11_280_000, 41, now)).Find("li.gap")
	if got := text(row); got != "You left at 10:18. 41 entries in 3 h 8 min" || row.AttrOr("id", "") != "" || row.Find("time[datetime]").Length() != 1 {
		t.Errorf("the row says %q, id %q", got, row.AttrOr("id", ""))
	}
	if got := text(render(t, components.AwayRow(now-61_000, 1, now)).Find("li")); got != "You left at 13:24. 1 entry in 1 min" {
		t.Errorf("the row says %q", got)
	}
}
