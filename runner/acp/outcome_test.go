package acp

import (
	"math"
	"testing"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// What an agent claims to have used can't take a session's sum below nothing, nor over
// the end of its numbers: its bounds hold (COO-5).
func TestUsage_IsBounded(t *testing.T) {
	t.Parallel()
	most, less := int64(math.MaxInt64), int64(-7)
	var sum int64
	for range 1000 {
		u := usage(&wire.Usage{InputTokens: &most, OutputTokens: &most})
		if sum += u.InputTokens + u.OutputTokens; sum <= 0 {
			t.Fatalf("the sum is %d", sum)
		}
	}
	if got := usage(&wire.Usage{InputTokens: &less}); got != (journal.Usage{}) {
		t.Errorf("got %+v", got)
	}
}
