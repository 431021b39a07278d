package store

import (
	"fmt"
	"testing"

	"holdfast/journal"
)

// What a writer remembers of a session never stands against its row: the row is
// what was committed, the memory may be of what was rolled back.
func TestStates_RowDecides(t *testing.T) {
	t.Parallel()
	s := states{}
	s.keep("ses_1", `{"title":"rolled back"}`, journal.State{Title: "rolled back"})
	row := &sessionRow{ID: "ses_1", State: `{"title":"committed"}`, UpdatedAt: 7}
	for range 2 { // parsed, then remembered
		st, err := s.of(row)
		if err != nil || st.Title != "committed" || st.UpdatedAt != 7 {
			t.Fatalf("got %q of %d, %v; want what the row says", st.Title, st.UpdatedAt, err)
		}
	}
	if _, err := s.of(&sessionRow{ID: "ses_1", State: "{"}); err == nil {
		t.Error("a damaged state was answered from memory")
	}
}

// A writer's memory is bounded, and what it gives out is not changed by an event.
func TestStates_BoundedAndShared(t *testing.T) {
	t.Parallel()
	s := states{}
	for i := range 3 * maxStates {
		s.keep(fmt.Sprintf("ses_%d", i), "{}", journal.State{})
	}
	if len(s) > maxStates {
		t.Errorf("%d states are remembered; at most %d may be", len(s), maxStates)
	}
	row := &sessionRow{ID: "ses_x", State: `{"admitted":[{"id":"inp_1","delivery":"queue"},{"id":"inp_2","delivery":"queue"}]}`}
	first, err := s.of(row)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Apply(&journal.Event{Seq: 3}, &journal.PromptWithdrawn{PromptID: "inp_1"}); err != nil {
		t.Fatal(err)
	}
	again, err := s.of(row)
	if err != nil || len(first.Admitted) != 1 || len(again.Admitted) != 2 || again.Admitted[0].ID != "inp_1" {
		t.Errorf("after an event elsewhere the row reads %v, %v", again.Admitted, err)
	}
}
