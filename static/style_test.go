package static

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// palette reads the colours of the first block of the stylesheet that opens so.
func palette(t *testing.T, opening string) map[string]string {
	t.Helper()
	_, rest, found := strings.Cut(string(assets().byFile["app.css"].Data), opening+" {")
	block, _, closed := strings.Cut(rest, "}")
	colours := map[string]string{}
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`).FindAllStringSubmatch(block, -1) {
		colours[m[1]] = m[2]
	}
	if !found || !closed || len(colours) == 0 {
		t.Fatalf("the stylesheet has no colours in %q", opening)
	}
	return colours
}

// luminance and contrast are those of WCAG 2.2.
func luminance(hex string) float64 {
	v, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		panic(err)
	}
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(v>>(16-8*i)&0xff) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b string) float64 {
	high, low := luminance(a), luminance(b)
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

// The stylesheet names each font, as it is served.
func TestStylesheet_Fonts(t *testing.T) {
	t.Parallel()
	css := string(assets().byFile["app.css"].Data)
	seen := 0
	for file, a := range assets().byFile {
		if strings.HasSuffix(file, ".woff2") {
			seen++
			if !strings.Contains(css, "url("+a.Name+")") {
				t.Errorf("the stylesheet does not name %s", a.Name)
			}
		}
	}
	if seen == 0 {
		t.Error("saw no font")
	}
}

// Text has a contrast of 4.5 and what else must be seen one of 3, in both
// palettes; only line is decoration.
func TestStylesheet_Contrast(t *testing.T) {
	t.Parallel()
	pairs := []struct {
		fg, bg string
		least  float64
	}{
		{"run ask unk rev bad off", "paper surface sunken", 4.5},
		{"line-strong ask-line unk-line focus", "paper surface", 3},
		{"ink", "paper surface sunken ask-bg", 4.5},
		{"ink-2 ink-3 accent", "paper surface sunken", 4.5},
		{"accent-ink", "accent", 4.5},
		{"paper", "ink ask", 4.5}, // a pressed button, a count
		{"run", "run-bg", 4.5},
		{"ask", "ask-bg", 4.5},
		{"unk", "unk-bg", 4.5},
		{"rev", "rev-bg", 4.5},
		{"bad", "bad-bg", 4.5},
		{"off", "off-bg", 4.5},
		{"add-ink", "add-bg", 4.5},
		{"del-ink", "del-bg", 4.5},
	}
	for name, opening := range map[string]string{"light": ":root", "dark": ":root[data-theme=dark]"} {
		p := palette(t, opening)
		for _, pair := range pairs {
			for _, fg := range strings.Fields(pair.fg) {
				for _, bg := range strings.Fields(pair.bg) {
					if p[fg] == "" || p[bg] == "" {
						t.Errorf("%s: there is no %s or no %s", name, fg, bg)
					} else if c := contrast(p[fg], p[bg]); c < pair.least {
						t.Errorf("%s: %s on %s has a contrast of %.2f, less than %g", name, fg, bg, c, pair.least)
					}
				}
			}
		}
	}
}

// The system's dark and the chosen dark are one, and dark names what light names.
func TestStylesheet_Palettes(t *testing.T) {
	t.Parallel()
	light, dark := palette(t, ":root"), palette(t, ":root[data-theme=dark]")
	if system := palette(t, ":root:not([data-theme=light])"); !maps.Equal(system, dark) {
		t.Errorf("the system's dark is %v, the chosen one %v", system, dark)
	}
	if l, d := slices.Sorted(maps.Keys(light)), slices.Sorted(maps.Keys(dark)); fmt.Sprint(l) != fmt.Sprint(d) {
		t.Errorf("light has %v, dark has %v", l, d)
	}
}
