package journal

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// proves COO-5
func TestCallTime(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int64]struct {
		limit   time.Duration
		bounded bool
	}{
		0: {DefaultCallTime, true}, -1: {DefaultCallTime, true}, 1: {time.Second, false}, 1800: {DefaultCallTime, false}, 1801: {DefaultCallTime, true},
		math.MaxInt64: {DefaultCallTime, true}, // as nanoseconds it would be negative
	} {
		if limit, bounded := CallTime(asked); limit != want.limit || bounded != want.bounded {
			t.Errorf("%d s: %s, bounded %v; want %+v", asked, limit, bounded, want)
		}
	}
	for input, want := range map[string]int64{`{"command":"x","timeout_s":90}`: 1000 + 90_000, `{"command":"x"}`: 1000 + 1_800_000, `[1]`: 1000 + 1_800_000, ``: 1000 + 1_800_000, `{"timeout_s":"90"}`: 1000 + 1_800_000} {
		if got := (&Call{Input: json.RawMessage(input), DispatchedAt: 1000}).EndsBy(); got != want {
			t.Errorf("%s ends by %d, want %d", input, got, want)
		}
	}
	if got := (&Call{}).EndsBy(); got != 0 {
		t.Errorf("what wasn't started ends by %d", got)
	}
}
