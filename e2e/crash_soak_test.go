//go:build crashpoints && soak

package e2e

import (
	"fmt"
	"testing"
)

// Twenty worlds with fifty kills each, on each database.
// proves ADM-1 ADM-3 CAL-4 CAL-6 REC-4 REC-5 REC-9 REC-11 LEA-11 RDR-2
func TestSoak_KilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	first := seed(t)
	for i := range uint64(20) {
		t.Run(fmt.Sprint("world ", i), func(t *testing.T) {
			t.Parallel()
			each(t, func(_ *testing.T, w *world) { randomKills(w, 50, first+i) })
		})
	}
}
