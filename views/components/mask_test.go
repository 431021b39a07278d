package components_test

import (
	"html"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
)

// A secret that was written in pieces isn't put together again when it is drawn.
// proves OWN-3
func TestMasking(t *testing.T) {
	t.Parallel()
	const secret = "sk9-Zq7&x"
	ctx := components.Masking(t.Context(), journal.NewCleaner([]string{secret, "Zq7&xyz"}))
	for name, c := range map[string]templ.Component{
		"an escape":           components.Markdown(`before sk9\-Zq7\&x after`).Component(),
		"entities":            components.Markdown(`before &#115;k9-Zq7&amp;x after`).Component(),
		"emphasis":            components.Markdown(`before sk9-*Zq7*&x after`).Component(),
		"code and a heading":  components.Markdown("# before `sk9-`Zq7&x after").Component(),
		"two that overlap":    components.Markdown(`before sk9\-Zq7\&xyz after`).Component(),
		"a link":              components.Markdown(`before [sk9\-Zq7&x](http://x.example/sk9&#45;Zq7&x) after`).Component(),
		"an encoded link":     components.Markdown(`before [*](http://x.example/s%6b9-Zq7%26x) [hidden] after`).Component(),
		"too much to be read": components.Markdown(strings.Repeat("[", 2000) + `before sk9-Zq7&x after`).Component(),
		"colours":             components.Terminal("before sk9\x1b[31m-Zq7\x1b[0m&x after").Component(),
		"colours, in a box":   components.Terminal("before \x1b[31msk9-\x1b[0mZq7&x after").Pre(),
		"text":                components.Text(components.Uncoloured("before sk9\x1b[31m-Zq7&x after")),
		"a sentence":          components.Sentence(components.Say("before ", components.Code(secret), " after"), 0),
	} {
		var b strings.Builder
		if err := c.Render(ctx, &b); err != nil {
			t.Fatal(err)
		}
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		got := doc.Text()
		if strings.Contains(got+html.UnescapeString(b.String()), secret) || strings.Contains(got, "Zq7") || !strings.Contains(got, journal.Hidden) || !strings.Contains(got, "before") || !strings.Contains(got, "after") {
			t.Errorf("%s: drawn as %s", name, b.String())
		}
	}
	// What holds none is drawn as it is.
	for _, s := range []string{"a < b & \"c\" **d** [e](http://x.example/?a=b&c=d)", "`x`\n\n- y"} {
		var masked, plain strings.Builder
		if components.Markdown(s).Component().Render(ctx, &masked) != nil || components.Markdown(s).Component().Render(t.Context(), &plain) != nil || masked.String() != plain.String() {
			t.Errorf("%q is drawn as %s, want %s", s, masked.String(), plain.String())
		}
	}
}
