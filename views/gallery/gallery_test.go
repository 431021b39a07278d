package gallery_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/journal"
	"holdfast/views/gallery"
)

func page(t *testing.T) *goquery.Document {
	t.Helper()
	var b strings.Builder
	if err := gallery.Page("/static/app.css", "dark").Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// exported are the functions of package components that give a component, read
// from their sources.
func exported(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../components/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.IsExported() && givesComponent(fn) {
				out = append(out, fn.Name.Name)
			}
		}
	}
	if len(out) < 25 {
		t.Fatalf("found %d components only: %v", len(out), out)
	}
	return out
}

func givesComponent(fn *ast.FuncDecl) bool {
	if fn.Type.Results == nil || len(fn.Type.Results.List) != 1 {
		return false
	}
	sel, ok := fn.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Component"
}

// A component that isn't drawn here fails, so that the page can't lag.
func TestPage_HasEveryComponent(t *testing.T) {
	t.Parallel()
	doc := page(t)
	for _, name := range exported(t) {
		at := doc.Find(`[data-component="` + name + `"]`)
		if name == "Sprite" { // once in a page
			at = doc.Find("svg.sprite").Parent()
		}
		if at.Length() == 0 {
			t.Errorf("%s isn't drawn: add its states to a section", name)
		} else if at.Children().Length() < 2 && at.Text() == at.Find("h3").Text() {
			t.Errorf("%s is named, but draws nothing", name)
		}
	}
}

func TestPage_HasEveryState(t *testing.T) {
	t.Parallel()
	doc := page(t)
	for _, section := range []string{"register", "last-known"} {
		drawn := map[string]bool{}
		doc.Find("section[aria-labelledby=" + section + `] [data-testid="reading-execution"]`).Each(func(_ int, cell *goquery.Selection) {
			drawn[cell.AttrOr("data-state", "")] = true
			if stale := section == "last-known"; cell.HasClass("stale") != stale || strings.Contains(cell.Text(), "last known") != stale || strings.Contains(cell.Text(), "May have changed since.") != stale {
				t.Errorf("%s: %q", section, strings.Join(strings.Fields(cell.Text()), " "))
			}
		})
		for _, s := range journal.States() {
			if !drawn[string(s)] {
				t.Errorf("%s isn't drawn as %s", s, section)
			}
		}
	}
}

// The words of the view are the script's; the page has the same.
func TestViews_AreThoseOfTheScript(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("../../static/live.js")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(src), "const looks = {")
	table, _, end := strings.Cut(table, "};")
	looks := regexp.MustCompile(`(\w+): \['([^']*)', '(\w+)'\]`).FindAllStringSubmatch(table, -1)
	if !ok || !end || len(looks) == 0 {
		t.Fatal("the script has no table of looks")
	}
	doc := page(t)
	for _, l := range looks {
		if l[1] == "manual" { // the server's words, in every register above
			continue
		}
		i := slices.IndexFunc(gallery.Views, func(v gallery.View) bool { return v.Key == l[1] })
		if i < 0 || gallery.Views[i].Words != l[2] || gallery.Views[i].Icon != l[3] {
			t.Errorf("the script says %s by %q and the shape %s", l[1], l[2], l[3])
			continue
		}
		cell := doc.Find(`section[aria-labelledby=views] [data-testid="reading-your-view"][data-state=` + l[1] + `]`)
		if cell.Length() != 1 || cell.Find(".words").Text() != l[2] || cell.Find("use").AttrOr("href", "") != "#i-"+l[3] || cell.Find(".cell-d").Text() != gallery.Views[i].Detail {
			t.Errorf("%s is drawn as %q", l[1], cell.Text())
		}
	}
	if len(gallery.Views) != len(looks)-1 {
		t.Errorf("%d views, the script has %d", len(gallery.Views), len(looks)-1)
	}
}

func TestPage_HasEveryIcon(t *testing.T) {
	t.Parallel()
	doc := page(t)
	var sprite []string
	doc.Find("symbol").Each(func(_ int, s *goquery.Selection) {
		sprite = append(sprite, strings.TrimPrefix(s.AttrOr("id", ""), "i-"))
	})
	for _, name := range sprite {
		if !slices.Contains(gallery.IconNames, name) {
			t.Errorf("the shape %s isn't among the icons", name)
		}
	}
	if len(sprite) != len(gallery.IconNames) {
		t.Errorf("%d icons, the sprite has %d", len(gallery.IconNames), len(sprite))
	}
}

// Many drawings stand on one page, without a script: each with ids of its own,
// which labels and descriptions find.
func TestPage_IsOnePage(t *testing.T) {
	t.Parallel()
	doc := page(t)
	ids := map[string]bool{}
	doc.Find("[id]").Each(func(_ int, el *goquery.Selection) {
		id := el.AttrOr("id", "")
		if ids[id] {
			t.Errorf("the id %s stands twice", id)
		}
		ids[id] = true
	})
	for _, attr := range []string{"for", "aria-labelledby"} {
		doc.Find("[" + attr + "]").Each(func(_ int, el *goquery.Selection) {
			for id := range strings.FieldsSeq(el.AttrOr(attr, "")) {
				if !ids[id] {
					t.Errorf("%s refers to %s, which isn't there", attr, id)
				}
			}
		})
	}
	if doc.Find("script, [style], [autofocus]").Length() != 0 {
		t.Error("the page needs a script or a style of its own, or takes the focus")
	}
	if doc.Find("html").AttrOr("data-theme", "") != "dark" {
		t.Error("the theme that was asked for isn't shown")
	}
	doc.Find(".toc a").Each(func(_ int, a *goquery.Selection) {
		if !ids[strings.TrimPrefix(a.AttrOr("href", ""), "#")] {
			t.Errorf("the contents lead to %s", a.AttrOr("href", ""))
		}
	})
	if n := doc.Find(".toc a").Length(); n != len(gallery.Sections()) || n < 20 {
		t.Errorf("%d contents for %d sections", n, len(gallery.Sections()))
	}
}
