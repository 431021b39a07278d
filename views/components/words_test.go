package components_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// plain finds an apostrophe that isn't the one of pages.
var plain = regexp.MustCompile(`[A-Za-z]'[a-z]`)

// The pages' own words have curly apostrophes and quotes throughout. The one that is
// compared with what the journal has is the journal's.
func TestWords_AreCurly(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal") || strings.Contains(path, "gallery") {
			return err
		}
		files++
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		markup, texts := literals(f)
		said := readable(t, markup)
		for _, text := range append(texts, said...) {
			if plain.MatchString(text) && text != "The agent's process " {
				t.Errorf("%s says %q", path, text)
			}
		}
		for _, text := range said {
			if strings.Contains(text, `"`) {
				t.Errorf("%s says %q", path, text)
			}
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Errorf("%d files were read, %v", files, err)
	}
}

// literals are the markup that a file of a template writes, and its other texts.
func literals(f *ast.File) (markup string, texts []string) {
	written := map[ast.Expr]bool{}
	var b strings.Builder
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "WriteString" && len(n.Args) == 3 {
				written[n.Args[2]] = true
			}
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			switch {
			case n.Kind != token.STRING || err != nil:
			case written[n]:
				b.WriteString(text)
			default:
				texts = append(texts, text)
			}
		}
		return true
	})
	return b.String(), texts
}

// readable are the texts and names in markup.
func readable(t *testing.T, markup string) (out []string) {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(markup))
	if err != nil {
		t.Fatal(err)
	}
	doc.Find("[aria-label], [title], [placeholder]").Each(func(_ int, s *goquery.Selection) {
		out = append(out, s.AttrOr("aria-label", ""), s.AttrOr("title", ""), s.AttrOr("placeholder", ""))
	})
	return append(out, strings.Split(doc.Text(), ".")...)
}

func TestCurly(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"It isn't known, so don't. Who's asked?": "It isn’t known, so don’t. Who’s asked?",
		`There is no "o's" that we'd know`:       `There is no "o's" that we’d know`,
		"'quoted' a'b":                           "'quoted' a'b",
	} {
		if got := components.Curly(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// The heading of an entry is read aloud and copied as one text: its note doesn't run
// into what stands before it.
func TestJournalRow_HeadingHasBlanks(t *testing.T) {
	t.Parallel()
	notes := 0
	for _, one := range fixtures.EveryKind() {
		w := window(t, one.Body)
		doc := render(t, components.JournalRow(components.Entries(w)[0], now))
		doc.Find("h3 > small").Each(func(_ int, s *goquery.Selection) {
			notes++
			before := s.Get(0).PrevSibling
			if before == nil || before.FirstChild != nil || !strings.HasSuffix(before.Data, " ") {
				t.Errorf("no blank before the note in %q", doc.Find("h3").Text())
			}
		})
	}
	if notes < 10 {
		t.Errorf("only %d entries have a note", notes)
	}
}
