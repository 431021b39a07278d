package components

import (
	"context"
	"html"
	"net/url"
	"regexp"
	"strings"

	"holdfast/journal"
)

type maskKey struct{}

// Masking marks a context with what hides secrets in what is drawn. The journal holds
// none, but drawing may put one together that was written in pieces: with escapes of
// Markdown, entities, or colours within it (OWN-3).
func Masking(ctx context.Context, c *journal.Cleaner) context.Context {
	return context.WithValue(ctx, maskKey{}, c)
}

func masks(ctx context.Context) *journal.Cleaner {
	c, _ := ctx.Value(maskKey{}).(*journal.Cleaner)
	return c
}

// maskText hides the secrets of a text that is drawn.
func maskText(ctx context.Context, s string) string {
	if c := masks(ctx); c != nil {
		return c.Bytes(s)
	}
	return s
}

// maskMarkup hides secrets in markup that has passed a filter, as a reader sees its
// text: over the tags within it.
func maskMarkup(ctx context.Context, markup string) string {
	c := masks(ctx)
	if c == nil {
		return markup
	}
	pieces := splitMarkup(markup)
	var plain strings.Builder
	for _, p := range pieces {
		if !isTag(p) {
			plain.WriteString(html.UnescapeString(p))
		}
	}
	found := c.Find(plain.String())
	var out strings.Builder
	at := 0
	for _, p := range pieces {
		if isTag(p) {
			out.WriteString(maskTag(c, p))
			continue
		}
		text := html.UnescapeString(p)
		if len(found) == 0 {
			out.WriteString(p)
		} else {
			out.WriteString(html.EscapeString(without(text, at, found)))
		}
		at += len(text)
	}
	return out.String()
}

// textAttributes are those that hold what people, agents and commands have written.
// Others are structure, by which pages, scripts and forms work.
var textAttributes = regexp.MustCompile(`( (?:title|aria-label|label|placeholder|alt|data-title|data-l)=")([^"]*)(")`)

// MaskPage hides the secrets of what is drawn, a page or a part of one: in its texts,
// its title, and the attributes that hold texts. What a form would send stays as it is.
// masked false: there is nothing to hide.
func MaskPage(ctx context.Context, markup []byte) (out []byte, masked bool) {
	c := masks(ctx)
	if c == nil || !c.Holds(markup, html.EscapeString) {
		return markup, false
	}
	var b strings.Builder
	typed := false
	for _, p := range splitMarkup(string(markup)) {
		switch {
		case isTag(p):
			typed = strings.HasPrefix(p, "<textarea")
			b.WriteString(textAttributes.ReplaceAllStringFunc(p, func(attr string) string {
				m := textAttributes.FindStringSubmatch(attr)
				return m[1] + maskEscaped(c, m[2]) + m[3]
			}))
		case typed:
			b.WriteString(p)
		default:
			b.WriteString(maskEscaped(c, p))
		}
	}
	return []byte(b.String()), true
}

// maskEscaped masks a text as it stands in markup.
func maskEscaped(c *journal.Cleaner, s string) string {
	said := html.UnescapeString(s)
	if clean := c.Bytes(said); clean != said {
		return html.EscapeString(clean)
	}
	return s
}

// Mask is what a context masks by; nil: nothing.
func Mask(ctx context.Context) *journal.Cleaner { return masks(ctx) }

// splitMarkup gives the tags and the texts of filtered markup, in which a lesser-than
// sign begins a tag and a greater-than sign ends it.
func splitMarkup(markup string) []string {
	var out []string
	for markup != "" {
		end := strings.IndexByte(markup, '<')
		if end == 0 {
			end = strings.IndexByte(markup, '>') + 1
		}
		if end <= 0 {
			end = len(markup)
		}
		out = append(out, markup[:end])
		markup = markup[end:]
	}
	return out
}

func isTag(piece string) bool { return piece[0] == '<' }

// maskTag takes the attributes of a tag away if a secret is in them.
func maskTag(c *journal.Cleaner, tag string) string {
	if !strings.Contains(tag, "=") {
		return tag
	}
	said := html.UnescapeString(tag)
	decoded, err := url.PathUnescape(said)
	if len(c.Find(said)) == 0 && (err != nil || len(c.Find(decoded)) == 0) {
		return tag
	}
	name, _, _ := strings.Cut(tag[1:len(tag)-1], " ")
	return "<" + name + ">"
}

// without is a piece of a text that begins at a place of it, with the found parts
// hidden; each is named once, where it begins.
func without(text string, at int, found []journal.Span) string {
	var b strings.Builder
	done := at
	end := at + len(text)
	for _, f := range found {
		if f.End <= at || f.Start >= end {
			continue
		}
		if f.Start >= at {
			b.WriteString(text[done-at : f.Start-at])
			b.WriteString(journal.Hidden)
		}
		done = min(f.End, end)
	}
	b.WriteString(text[done-at:])
	return b.String()
}
