package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

// A message that waits is said to be delivered when it is: in the middle of a turn only
// where the agent takes it there.
//
// proves PRO-4
func TestQueue_SaysWhenItIsDelivered(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]components.QueuedPrompt{
		"Steers the turn,": {Delivery: journal.Steer, Joins: true},
		"Delivered before the queue, when the agent is free,": {Delivery: journal.Steer},
		"Begins the next turn,":                               {Delivery: journal.Steer, Next: true, Joins: true},
		"Queued,":                                             {Delivery: journal.Queue, Joins: true},
	} {
		if got := text(render(t, components.Queue([]components.QueuedPrompt{p}, now, false, false)).Find(".q-text .muted")); !strings.HasPrefix(got, want) {
			t.Errorf("%+v: says %q, want %q", p, got, want)
		}
	}
}

// A message that waits is shown in whole lines, and says if there is more of it.
func TestQueue_ShowsWholeLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, first, rest string
	}{
		"short":      {"# One\n\n```sh\npwd\n```\n", "# One\n\n```sh\npwd\n```", ""},
		"many lines": {strings.Repeat("line\n", 20), strings.TrimSuffix(strings.Repeat("line\n", 8), "\n"), "This is its beginning, of 20 lines, 100 bytes. All of it is delivered."},
		"long":       {strings.Repeat("x", 700), "", "This is its beginning, of 1 line, 700 bytes. All of it is delivered."},
	} {
		doc := render(t, components.Queue([]components.QueuedPrompt{{ID: "inp_1", Seq: 2, Text: c.text}}, now, false, false))
		if got := doc.Find(".prose").Text(); strings.TrimSpace(got) != c.first && c.first != "" || doc.Find(".clamp").Length() != 0 {
			t.Errorf("%s: shows %q", name, got)
		}
		if got := text(doc.Find(`[data-testid="queued-rest"]`)); got != c.rest {
			t.Errorf("%s: says %q of the rest, want %q", name, got, c.rest)
		}
	}
}
