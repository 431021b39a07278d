//go:build crashpoints && soak

package mutants

import "testing"

// TestSoak_Mutants runs them all.
func TestSoak_Mutants(t *testing.T) {
	t.Parallel()
	killAll(t, load(t))
}
