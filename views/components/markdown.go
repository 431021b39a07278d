package components

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/a-h/templ"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"holdfast/journal"
)

// headingsFrom is the level of a message's first headings: the page, its parts
// and its entries have those above.
const headingsFrom = 4

// Bounds of a text that is read as Markdown; one past them is drawn as it stands.
// Reading takes the square of the brackets, and a table has rows times columns.
const (
	maxBrackets = 1000
	maxCells    = 20_000
)

// Markdown draws a text of an agent. Its markup is no markup here, an image is
// its description, and links lead out by http, https or mailto only; of others
// the target is shown. Characters that act stand as escapes, written as entities
// too.
func Markdown(s string) SafeHTML {
	s = Plain(strings.ToValidUTF8(journal.Cut(s, proseBytes+len("…")), "\ufffd"))
	var b strings.Builder
	if !simple(s) || markdown().Convert([]byte(nested.ReplaceAllString(s, "> ")), &b) != nil {
		b.Reset()
		b.WriteString("<pre>\n" + templ.EscapeString(s) + "</pre>")
	}
	return clean(markdownPolicy(), Plain(b.String()))
}

func simple(s string) bool {
	pipes, lines := 0, 0
	for line := range strings.Lines(s) {
		pipes = max(pipes, strings.Count(line, "|"))
		lines++
	}
	return strings.Count(s, "[") <= maxBrackets && pipes*lines <= maxCells
}

// nested is where quotes and lists nest so deeply that browsers give up.
var nested = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|(?:[-+*]|[0-9]{1,9}[.)])[ \t])){100,}`)

// markdown reads no HTML at all, so that what looks like it stays readable.
var markdown = sync.OnceValue(func() goldmark.Markdown {
	without := func(list []util.PrioritizedValue, drop ...any) []util.PrioritizedValue {
		return slices.DeleteFunc(list, func(v util.PrioritizedValue) bool {
			return slices.ContainsFunc(drop, func(d any) bool { return reflect.TypeOf(d) == reflect.TypeOf(v.Value) })
		})
	}
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(without(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
			parser.WithInlineParsers(without(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
			parser.WithASTTransformers(util.Prioritized(tame{}, 0)),
		)),
		goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone)), extension.Strikethrough),
		goldmark.WithRendererOptions(html.WithHardWraps()),
	)
})

// tame changes what a text may not have on our pages.
type tame struct{}

// Transform is asked for once the text was read.
func (tame) Transform(doc *ast.Document, r text.Reader, _ parser.Context) {
	var found []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // ours returns no error
		if entering {
			found = append(found, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range found {
		switch n := n.(type) {
		case *ast.Heading:
			n.Level = min(n.Level+headingsFrom-1, 6)
		case *ast.Image:
			unwrap(n, "")
		case *ast.Link:
			tameLink(n, string(n.Destination), true)
		case *ast.AutoLink:
			to := string(n.URL(r.Source()))
			if n.AutoLinkType == ast.AutoLinkEmail {
				to = "mailto:" + to
			}
			tameLink(n, to, false)
		}
	}
}

// tameLink keeps a link that leads where it may; else its words stay, with the target.
func tameLink(n ast.Node, to string, named bool) {
	u, err := url.Parse(strings.TrimSpace(to))
	scheme := ""
	if err == nil {
		scheme = strings.ToLower(u.Scheme)
	}
	switch {
	case scheme == "mailto", (scheme == "http" || scheme == "https") && u.Host != "":
		n.SetAttributeString("rel", []byte("nofollow noopener"))
	case named && to != "":
		unwrap(n, " ("+to+")")
	default:
		unwrap(n, to)
	}
}

// unwrap puts what a node holds in its place, and a text after it.
func unwrap(n ast.Node, after string) {
	parent := n.Parent()
	for child := n.FirstChild(); child != nil; {
		next := child.NextSibling()
		parent.InsertBefore(parent, n, child)
		child = next
	}
	if after != "" {
		s := ast.NewString([]byte(after))
		s.SetRaw(true)
		parent.InsertBefore(parent, n, s)
	}
	parent.RemoveChild(parent, n)
}

var markdownPolicy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "del", "table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[A-Za-z0-9+#_-]{1,30}$`)).OnElements("code")
	p.AllowAttrs("rel").Matching(regexp.MustCompile(`^nofollow noopener$`)).OnElements("a")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(false)
	p.RequireParseableURLs(true)
	return p
})
