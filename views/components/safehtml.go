package components

import (
	"context"
	"io"

	"github.com/a-h/templ"
	"github.com/microcosm-cc/bluemonday"
)

// SafeHTML is markup that has passed a filter. Only clean makes one that isn't
// empty, and only Component trusts it; a test of the architecture says so.
type SafeHTML struct{ html string }

// clean lets through what the policy names, and nothing else.
func clean(policy *bluemonday.Policy, markup string) SafeHTML {
	return SafeHTML{policy.Sanitize(markup)}
}

// Empty reports whether there is nothing to draw.
func (h SafeHTML) Empty() bool { return h.html == "" }

// Component draws the markup as it stands, without what the context masks.
func (h SafeHTML) Component() templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return templ.Raw(maskMarkup(ctx, h.html)).Render(ctx, w)
	})
}

// Pre draws it inside pre. A parser drops the first newline there, so one is put
// before it.
func (h SafeHTML) Pre() templ.Component { return SafeHTML{"\n" + h.html}.Component() }
