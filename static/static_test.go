package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]struct{ path, kind string }{
		"app.css":                              {`^/static/app\.[0-9a-f]{12}\.css$`, "text/css; charset=utf-8"},
		"icon-plain.svg":                       {`^/static/icon-plain\.[0-9a-f]{12}\.svg$`, "image/svg+xml"},
		"htmx.min.js":                          {`^/static/htmx\.min\.[0-9a-f]{12}\.js$`, "text/javascript; charset=utf-8"},
		"ibm-plex-sans-latin-400-normal.woff2": {`^/static/ibm-plex-sans-latin-400-normal\.[0-9a-f]{12}\.woff2$`, "font/woff2"},
	} {
		p := Path(file)
		if !regexp.MustCompile(want.path).MatchString(p) {
			t.Errorf("%s is at %q", file, p)
		}
		a, ok := Find(strings.TrimPrefix(p, Prefix))
		if !ok || a.Path() != p || a.Type != want.kind || len(a.Data) == 0 {
			t.Errorf("%s: found %v, %+v", file, ok, a)
		}
	}
	for _, name := range []string{"app.css", "app.000000000000.css", "fonts", "../static.go", ""} {
		if _, ok := Find(name); ok {
			t.Errorf("found %q", name)
		}
	}
}

func TestPath_UnknownName(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a name that isn't embedded has a path")
		}
	}()
	Path("resume.min.js")
}

// Since Path panics for a name that isn't embedded, each name in the sources is
// looked up here, also those that no other test draws.
func TestPath_Names(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`static\.Path\("([^"]+)"\)`)
	seen := 0
	for _, dir := range []string{"../views", "../handlers"} {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".templ") && !strings.HasSuffix(p, ".go") {
				return err
			}
			src, err := os.ReadFile(p)
			for _, m := range call.FindAllSubmatch(src, -1) {
				seen++
				if assets().byFile[string(m[1])] == nil {
					t.Errorf("%s names %q, which isn't embedded", p, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen == 0 {
		t.Error("saw no name")
	}
}

func TestAsset_Encoded(t *testing.T) {
	t.Parallel()
	css, _ := Find(strings.TrimPrefix(Path("app.css"), Prefix))
	font, _ := Find(strings.TrimPrefix(Path("ibm-plex-sans-latin-400-normal.woff2"), Prefix))
	for _, c := range []struct {
		asset  *Asset
		accept string
		want   string
	}{
		{css, "gzip, deflate, br", "gzip"},
		{css, "br;q=1.0, GZIP;q=0.5", "gzip"},
		{css, "gzip; q=0, br", ""},
		{css, "gzip;q=0.000", ""},
		{css, "x-gzip", ""},
		{css, "", ""},
		{font, "gzip", ""},
	} {
		data, encoding := c.asset.Encoded(c.accept)
		if encoding != c.want {
			t.Errorf("%s for %q: %q", c.asset.Name, c.accept, encoding)
		}
		if encoding == "gzip" {
			r, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if data, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(data, c.asset.Data) {
			t.Errorf("%s for %q differs from its content", c.asset.Name, c.accept)
		}
	}
}

// The stylesheet names fonts as they are served, so its own name changes with
// theirs.
func TestLoad_References(t *testing.T) {
	t.Parallel()
	files := func(font string) fstest.MapFS {
		return fstest.MapFS{
			"fonts/a.woff2": {Data: []byte(font)},
			"app.css":       {Data: []byte(`@font-face{src:url(fonts/a.woff2) format("woff2"),url( "fonts/a.woff2" )}i{fill:url(#p)}`)},
		}
	}
	one, err := load(files("one"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := load(files("two"))
	if err != nil {
		t.Fatal(err)
	}
	name := one.byFile["a.woff2"].Name
	if got, want := string(one.byFile["app.css"].Data), `@font-face{src:url(`+name+`) format("woff2"),url(`+name+`)}i{fill:url(#p)}`; got != want {
		t.Errorf("the stylesheet is %s, want %s", got, want)
	}
	if one.byFile["app.css"].Name == two.byFile["app.css"].Name {
		t.Error("another font, and the stylesheet has the same name")
	}
	for what, bad := range map[string]fstest.MapFS{
		"an unknown reference": {"app.css": {Data: []byte("a{src:url(b.woff2)}")}},
		"two of one name":      {"a.js": {}, "vendor/a.js": {}},
		"an unknown type":      {"a.md": {}},
	} {
		if _, err := load(bad); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
}
