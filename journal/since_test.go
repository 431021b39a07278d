package journal

import "testing"

// A call that its agent began by itself began when that was heard, not when it was written
// down; what is no time before that is none.
//
// proves CAL-3
func TestCall_BeganWhenItWasHeard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ since, began, ran int64 }{
		"at once":  {0, 5_000, 4_000},
		"before":   {1_500, 1_500, 7_500},
		"later":    {6_000, 5_000, 4_000},
		"negative": {-1, 5_000, 4_000},
	} {
		call := &Call{State: CallIsProposed, AttemptID: "att_1"}
		for _, e := range []struct {
			at   int64
			body Body
		}{
			{5_000, &CallDispatched{N: 1, AllowedBy: AllowedBy{Type: AllowedByAgent}, Since: c.since}},
			{9_000, &CallSettled{State: CallSucceeded}},
		} {
			if err := call.Apply(&Event{Time: e.at, ExecutionID: "exe_1"}, e.body); err != nil {
				t.Fatal(err)
			}
		}
		if call.DispatchedAt != c.began || call.RanMS == nil || *call.RanMS != c.ran {
			t.Errorf("%s: it began at %d, and ran %v; want %d and %d", name, call.DispatchedAt, call.RanMS, c.began, c.ran)
		}
	}
}
