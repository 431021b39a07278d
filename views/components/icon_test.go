package components

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/journal"
)

// A reference to a shape that the sprite doesn't hold draws nothing, so each
// name in the sources is looked up.
func TestSprite_HoldsEachIcon(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := Sprite().Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	has := func(icon string) bool { return strings.Contains(b.String(), `<symbol id="i-`+icon+`"`) }
	used := regexp.MustCompile(`\bIcon(?:\(|: *|, e\.Class = | = )"([a-z]+)"`)
	seen := 0
	for _, pattern := range []string{"*.go", "*.templ", "../pages/*.templ", "../pages/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range used.FindAllSubmatch(src, -1) {
				seen++
				if !has(string(m[1])) {
					t.Errorf("%s draws the icon %q, which the sprite doesn't hold", file, m[1])
				}
			}
		}
	}
	if seen == 0 {
		t.Error("saw no icon")
	}
	for _, s := range []journal.PlanState{journal.PlanPending, journal.PlanRunning, journal.PlanWaiting, journal.PlanDone, journal.PlanFailed, journal.PlanSkipped, journal.PlanUnknown, planStopped} {
		if !has(planIcon(s)) {
			t.Errorf("%s draws the icon %q, which the sprite doesn't hold", s, planIcon(s))
		}
	}
	for _, r := range AllReadings() {
		if !has(r.Icon) {
			t.Errorf("%s draws the icon %q, which the sprite doesn't hold", r.Key, r.Icon)
		}
	}
}
