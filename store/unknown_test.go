package store_test

import (
	"strings"
	"testing"

	"holdfast/store"
	"holdfast/store/storetest"
)

// A call that was lost is found without a look at the session's other calls, of which there
// may be thousands, with long inputs.
//
// proves CAL-6
func TestStore_SameAsUnknownReadsNoOtherCalls(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, "sqlite").Open(t)
	if plan, err := store.PlanOfSameAsUnknown(t.Context(), s); err != nil || !strings.Contains(plan, "INDEX call_unknown") {
		t.Errorf("the plan is %q, %v", plan, err)
	}
}
