package journal_test

import (
	"testing"

	"holdfast/journal"
)

// What isn't known is never run again by itself.
//
// proves CAL-2
func TestParseEffect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]journal.Effect{
		"read": journal.EffectRead, "idempotent": journal.EffectIdempotent, "effect": journal.EffectEffect,
		"": journal.EffectEffect, "Read": journal.EffectEffect, "readonly": journal.EffectEffect, "read ": journal.EffectEffect,
	} {
		if got := journal.ParseEffect(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
