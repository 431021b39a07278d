package components_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/views/components"
)

func delta(id, s string) journal.Body {
	return &journal.MessageDelta{MessageID: id, Part: journal.PartText, Text: journal.T(s)}
}

// A message that is being written stands where it began, with all that a page
// knows of it; who follows is brought the rest, piece by piece.
//
// proves RDR-4
func TestEntries_MessageGrowsWhereItBegan(t *testing.T) {
	t.Parallel()
	w := window(t, &journal.TurnStarted{}, delta("msg_1", "one "), delta("msg_1", "two\u202e\n"))
	w.Writing = map[string]components.Writing{"msg_1/text": {Seq: 2}}
	followed := components.Entries(w)
	home := render(t, components.JournalRow(followed[1], now))
	if got := home.Find("#draft-text-msg_1"); got.Text() != "one " || got.AttrOr("data-through", "") != "2" || !strings.Contains(text(home.Find("h3")), "Agent is writing; this is not complete") {
		t.Errorf("the row where it began says %q, %q", got.Text(), text(home.Find("h3")))
	}
	if before := home.Find("#draft-text-msg_1-before[hidden]"); !strings.Contains(before.Text(), "What stands before this") {
		t.Error("a script that keeps the end of it has nothing to say so by")
	}
	li := render(t, components.JournalRow(followed[2], now)).Find("li[hidden]")
	if li.Text() != "two\\u202e\n" || li.Find("span.esc").Length() != 1 || li.AttrOr("data-adds-to", "") != "draft-text-msg_1" {
		t.Errorf("the next row brings %q to %q", li.Text(), li.AttrOr("data-adds-to", ""))
	}

	// A page has the text so far, and a run of pieces in place of each.
	w.Events, w.Through, w.Ended = w.Events[:2], 9, now
	w.Writing["msg_1/text"] = components.Writing{Seq: 2, Text: "one two three", Through: 9, Before: true}
	opened := components.Entries(w)
	if len(opened) != 3 || !opened[2].Piece || opened[2].From != 3 || opened[2].Seq != 9 {
		t.Fatalf("a page has the rows %+v", opened)
	}
	home = render(t, components.JournalRow(opened[1], now))
	if got := home.Find("#draft-text-msg_1"); got.Text() != "one two three" || got.AttrOr("data-through", "") != "9" || home.Find("#draft-text-msg_1-before:not([hidden])").Length() != 1 {
		t.Errorf("a page shows %q through %q", got.Text(), got.AttrOr("data-through", ""))
	}
	if run := render(t, components.JournalRow(opened[2], now)).Find("li#j-9[hidden]"); run.AttrOr("data-from", "") != "3" || run.Text() != "" {
		t.Errorf("the run is %q from %q", run.Text(), run.AttrOr("data-from", ""))
	}
}

// proves JRN-6
func TestEntries_LongPieceIsBounded(t *testing.T) {
	t.Parallel()
	w := window(t, delta("msg_1", strings.Repeat("a", 20_000)+"é"+strings.Repeat("z", 16<<10-1)))
	w.Writing = map[string]components.Writing{"msg_1/text": {Seq: 1}}
	row := render(t, components.JournalRow(components.Entries(w)[0], now))
	if got := row.Find("#draft-text-msg_1"); got.Text() != strings.Repeat("z", 16<<10-1) || got.AttrOr("data-most", "") != "16384" || row.Find("#draft-text-msg_1-before:not([hidden])").Length() != 1 {
		t.Errorf("it shows %d bytes, from %.20q on", len(got.Text()), got.Text())
	}
}

// proves ATT-4
func TestEntries_MessageThatWasCutOff(t *testing.T) {
	t.Parallel()
	w := window(t, delta("msg_1", "half"), &journal.AttemptUnknown{})
	w.Writing = map[string]components.Writing{"msg_1/text": {Seq: 1, CutOff: true, Text: "half", Through: 2}}
	row := render(t, components.JournalRow(components.Entries(w)[0], now))
	if got := text(row.Find("h3")); !strings.Contains(got, "incomplete: it was cut off here") || row.Find(".prose").Text() != "half" {
		t.Errorf("it says %q and %q", got, row.Find(".prose").Text())
	}
	note := render(t, components.DraftNotes([]components.DraftNote{components.NewDraftNote("msg_1", journal.PartText, true)}))
	if id := row.Find("h3 small").AttrOr("id", "none"); note.Find("small[hx-swap-oob]#"+id).Length() != 1 {
		t.Errorf("nothing takes the place of the note %s", id)
	}
}

// Once it is complete a message stands there alone, as Markdown; a thought is folded away.
func TestEntries_MessageStandsOnceWhenItIsWhole(t *testing.T) {
	t.Parallel()
	w := window(t, delta("msg_1", "one "), delta("msg_1", "*two*"), &journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("one *two*")})
	list := components.Entries(w)
	if !list[0].Piece || !list[1].Piece || list[0].Adds+list[1].Adds != "" {
		t.Errorf("its pieces are %+v, %+v", list[0], list[1])
	}
	row := render(t, components.JournalRow(list[2], now))
	if row.Find(".prose.md em").Text() != "two" || row.Find(`li[data-finishes="draft-text-msg_1"]`).Length() != 1 {
		t.Errorf("it is drawn as %q", row.Find(".prose").Text())
	}
	again := components.Entries(window(t, &journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("one")},
		&journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.T("one two")}))
	if again[0].Prose != "" || again[1].Prose != "one two" {
		t.Errorf("a message that went on stands as %q and %q", again[0].Prose, again[1].Prose)
	}
	thought := render(t, components.JournalRow(components.Entries(window(t, &journal.MessageCompleted{MessageID: "msg_2", Part: journal.PartReasoning, Text: journal.T("first **this**")}))[0], now))
	if fold := thought.Find("details:not([open])"); fold.Find(".prose strong").Length() != 1 || text(fold.Find("summary")) != "Show its thinking, 2 words" {
		t.Errorf("reasoning stands as %q", text(thought.Selection))
	}
}

// proves JRN-6
func TestEntries_LongMessageHasItsText(t *testing.T) {
	t.Parallel()
	w := window(t, &journal.MessageCompleted{MessageID: "msg_1", Part: journal.PartText, Text: journal.Text{Blob: "sum", Bytes: 40_000}})
	w.Texts["msg_1/text"] = strings.Repeat("word ", 8000)
	row := render(t, components.JournalRow(components.Entries(w)[0], now))
	if got := text(row.Find(".prose")); !strings.HasPrefix(got, "word word") || !strings.Contains(text(row.Selection), "more stand in the export") {
		t.Errorf("it shows %.80q", got)
	}
}
