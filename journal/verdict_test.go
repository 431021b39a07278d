package journal

import (
	"strings"
	"testing"
)

// What a person found is said in the same words wherever it is told: to people, to an
// agent, and to one that starts anew.
//
// proves CAL-6
func TestVerdict_InWords(t *testing.T) {
	t.Parallel()
	for v, want := range map[Verdict]string{
		Happened: "it happened", DidNotHappen: "it did not happen", InPart: "it happened in part", CannotTell: "nobody can tell",
		"of another build": "“of another build”",
	} {
		if got := v.Words(); got != want {
			t.Errorf("%s: says %q, want %q", v, got, want)
		}
		c := &Call{State: CallIsUnknown, Resolution: &Resolution{Outcome: v}}
		if err := c.Apply(&Event{}, &CallResolved{Outcome: Happened}); err == nil || !strings.Contains(err.Error(), "already reconciled: "+want+".") {
			t.Errorf("%s: a second word is answered with %v", v, err)
		}
	}
}
