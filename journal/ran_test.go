package journal

import "testing"

// How long a command ran is said only where it is known: by its own record, or by
// the execution that followed it from its start to its end.
func TestCall_Ran(t *testing.T) {
	t.Parallel()
	const unknown = -1
	for name, tt := range map[string]struct {
		execution  string
		adopted    bool
		settled    CallSettled
		ended, ran int64
	}{
		"followed":                  {"exe_1", false, CallSettled{State: CallFailed}, 9_000, 8_000},
		"followed, with a record":   {"exe_1", false, CallSettled{State: CallSucceeded, StartedAt: 500, EndedAt: 4_500}, 9_000, 4_000},
		"cancelled":                 {"exe_1", false, CallSettled{State: CallCancelled}, 9_000, unknown},
		"cancelled, with a record":  {"exe_1", false, CallSettled{State: CallCancelled, StartedAt: 500, EndedAt: 4_500}, 9_000, 4_000},
		"found":                     {"", false, CallSettled{State: CallSucceeded}, 9_000, unknown},
		"found, with a record":      {"", false, CallSettled{State: CallSucceeded, StartedAt: 500, EndedAt: 4_500}, 4_500, 4_000},
		"adopted":                   {"exe_2", true, CallSettled{State: CallSucceeded}, 9_000, unknown},
		"adopted, with a record":    {"exe_2", true, CallSettled{State: CallSucceeded, StartedAt: 500, EndedAt: 4_500}, 4_500, 4_000},
		"its clock was set back":    {"", false, CallSettled{State: CallSucceeded, StartedAt: 4_500, EndedAt: 500}, 9_000, unknown},
		"it never began":            {"", false, CallSettled{State: CallCancelled, Reason: ReasonNotStarted}, 9_000, unknown},
		"followed, and set back":    {"exe_1", false, CallSettled{State: CallSucceeded, StartedAt: 4_500, EndedAt: 500}, 9_000, 8_000},
		"by a record of no seconds": {"", false, CallSettled{State: CallSucceeded, StartedAt: 500, EndedAt: 500}, 500, 0},
	} {
		c := &Call{State: CallIsProposed}
		must := func(ev *Event, body Body) {
			t.Helper()
			if err := c.Apply(ev, body); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		must(&Event{Time: 1_000, ExecutionID: "exe_1"}, &CallDispatched{N: 1})
		if tt.adopted {
			must(&Event{Time: 2_000}, &CallAdopted{StateFolderID: "fld_1"})
		}
		must(&Event{Time: 9_000, ExecutionID: tt.execution}, &tt.settled)
		ran := int64(unknown)
		if c.RanMS != nil {
			ran = *c.RanMS
		}
		if ran != tt.ran || c.EndedAt != tt.ended {
			t.Errorf("%s: ran %d ms and ended at %d, want %d and %d", name, ran, c.EndedAt, tt.ran, tt.ended)
		}
	}
}
