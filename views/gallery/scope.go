package gallery

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/a-h/templ"
)

// A component may hold ids, of which a page has each once. Here it stands many
// times, so each drawing gets ids of its own, and what refers to them follows.
var (
	idAttr  = regexp.MustCompile(` id="([^"]*)"`)
	refAttr = regexp.MustCompile(` (for|list|aria-labelledby|aria-describedby|href)="([^"]*)"`)
)

// scoped draws a component under ids of its own. It takes the focus nowhere.
func scoped(scope string, body templ.Component) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		html, err := drawn(ctx, body)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, rename(scope, html))
		return err
	})
}

func drawn(ctx context.Context, body templ.Component) (string, error) {
	var b strings.Builder
	err := body.Render(ctx, &b)
	return b.String(), err
}

func rename(scope, html string) string {
	own := map[string]bool{}
	for _, m := range idAttr.FindAllStringSubmatch(html, -1) {
		own[m[1]] = true
	}
	html = strings.ReplaceAll(html, " autofocus", "")
	html = idAttr.ReplaceAllString(html, ` id="`+scope+`-$1"`)
	return refAttr.ReplaceAllStringFunc(html, func(attr string) string {
		m := refAttr.FindStringSubmatch(attr)
		name, value := m[1], m[2]
		if name == "href" {
			if target, ok := strings.CutPrefix(value, "#"); ok && own[target] {
				return fmt.Sprintf(` href="#%s-%s"`, scope, target)
			}
			return attr
		}
		ids := strings.Fields(value)
		for i, id := range ids {
			if own[id] {
				ids[i] = scope + "-" + id
			}
		}
		return fmt.Sprintf(` %s="%s"`, name, strings.Join(ids, " "))
	})
}

// change is a piece of a drawing with what a script puts in its place.
type change struct{ from, to string }

// changed draws a component as the script of a page leaves it. A piece that
// isn't there is a fault: the component or the script has changed.
func changed(body templ.Component, list ...change) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		html, err := drawn(ctx, body)
		if err != nil {
			return err
		}
		for _, c := range list {
			if !strings.Contains(html, c.from) {
				return fmt.Errorf("the component holds no %q for the script to change", c.from)
			}
			html = strings.ReplaceAll(html, c.from, c.to)
		}
		_, err = io.WriteString(w, html)
		return err
	})
}
