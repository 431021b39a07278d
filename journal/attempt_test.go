package journal_test

import (
	"strings"
	"testing"

	"holdfast/journal"
)

// A second verdict on an attempt is told that there is one, and which.
// proves ATT-6 CAL-8
func TestAttempt_SecondVerdict(t *testing.T) {
	t.Parallel()
	a := journal.Attempt{State: journal.AttemptIsUnknown}
	if err := a.Apply(&journal.Event{}, &journal.AttemptResolved{Outcome: journal.AttemptAbandon}); err != nil {
		t.Fatal(err)
	}
	err := a.Apply(&journal.Event{}, &journal.AttemptResolved{Outcome: journal.AttemptRetry})
	if !journal.Is(err, journal.Conflict) || !strings.Contains(err.Error(), "was chosen already: not to send it again.") {
		t.Errorf("the second verdict is refused as %v", err)
	}
}
