package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"strings"
	"testing"

	"holdfast/static"
)

func TestFind(t *testing.T) {
	t.Parallel()
	p := static.StylesheetPath()
	if !regexp.MustCompile(`^/static/app\.[0-9a-f]{12}\.css$`).MatchString(p) {
		t.Fatalf("stylesheet at %q", p)
	}
	a, ok := static.Find(strings.TrimPrefix(p, static.Prefix))
	if !ok || a.Path() != p || len(a.Data) == 0 {
		t.Fatalf("found %v %q, %d bytes", ok, a.Path(), len(a.Data))
	}
	r, err := gzip.NewReader(bytes.NewReader(a.Gzip))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(plain, a.Data) {
		t.Errorf("the compressed form differs: %v", err)
	}
	for _, name := range []string{"app.css", "app.000000000000.css", "../static.go", ""} {
		if _, ok := static.Find(name); ok {
			t.Errorf("found %q", name)
		}
	}
}
