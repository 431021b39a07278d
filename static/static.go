package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Prefix is the folder under which assets are served.
const Prefix = "/static/"

// The first pattern takes stylesheets and scripts together, since a pattern that
// finds nothing doesn't compile.
//
//go:embed *.[cj]s* *.svg fonts vendor
var files embed.FS

// types are those of the contents, by what a file's name ends with. What is
// compressed already isn't compressed again.
var types = map[string]struct {
	kind       string
	compressed bool
}{
	".css":   {kind: "text/css; charset=utf-8"},
	".js":    {kind: "text/javascript; charset=utf-8"},
	".svg":   {kind: "image/svg+xml"},
	".txt":   {kind: "text/plain; charset=utf-8"},
	".woff2": {kind: "font/woff2", compressed: true},
}

// Asset is one file as it is served.
type Asset struct {
	Name string // with its hash: app.0123456789ab.css
	Type string // of its content
	Data []byte

	gzip func() []byte // made by the first who asks; nil: never
}

// Path is where the asset is served.
func (a *Asset) Path() string { return Prefix + a.Name }

// Encoded is the content for a client that sent this Accept-Encoding, and the
// Content-Encoding that goes with it, "" for none.
func (a *Asset) Encoded(accept string) (data []byte, encoding string) {
	if a.gzip != nil && takesGzip(accept) {
		return a.gzip(), "gzip"
	}
	return a.Data, ""
}

// takesGzip reads an Accept-Encoding; a weight of 0 refuses.
func takesGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight, weighted := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !weighted || err != nil || q > 0
	}
	return false
}

// library holds the assets by the name of their file and by the name under
// which they are served.
type library struct {
	byFile   map[string]*Asset
	byServed map[string]*Asset
}

var assets = sync.OnceValue(func() *library {
	l, err := load(files)
	if err != nil { // the files are part of the program, and so is this mistake
		panic("static: " + err.Error())
	}
	return l
})

// Path is where the file of that name is served: Path("app.css"). Folders are
// not part of a name. A name that isn't embedded is a mistake of the program, so
// it panics; the tests look up each name that stands in the sources.
func Path(file string) string {
	a, ok := assets().byFile[file]
	if !ok {
		panic("static: there is no asset " + strconv.Quote(file))
	}
	return a.Path()
}

// Find gives the asset served under that name, hash included; an old hash is not found.
func Find(served string) (*Asset, bool) {
	a, ok := assets().byServed[served]
	return a, ok
}

// StylesheetPath is where the stylesheet of this build is served.
func StylesheetPath() string { return Path("app.css") }

// load reads all files; stylesheets last, since they name others.
func load(fsys fs.FS) (*library, error) {
	l := &library{byFile: map[string]*Asset{}, byServed: map[string]*Asset{}}
	var sheets []string
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case path.Ext(p) == ".css":
			sheets = append(sheets, p)
			return nil
		}
		return l.add(fsys, p, func(data []byte) ([]byte, error) { return data, nil })
	})
	if err != nil {
		return nil, err
	}
	for _, p := range sheets {
		if err := l.add(fsys, p, l.rename); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *library) add(fsys fs.FS, p string, edit func([]byte) ([]byte, error)) error {
	file, ext := path.Base(p), path.Ext(p)
	t, ok := types[ext]
	if !ok {
		return fmt.Errorf("%s: no type is known for %q", p, ext)
	}
	if l.byFile[file] != nil {
		return fmt.Errorf("%s: there are two files of that name", p)
	}
	data, err := fs.ReadFile(fsys, p)
	if err == nil {
		data, err = edit(data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	sum := sha256.Sum256(data)
	a := &Asset{Name: strings.TrimSuffix(file, ext) + "." + hex.EncodeToString(sum[:])[:12] + ext, Type: t.kind, Data: data}
	if !t.compressed {
		a.gzip = sync.OnceValue(func() []byte { return compress(a.Name, data) })
	}
	l.byFile[file], l.byServed[a.Name] = a, a
	return nil
}

// reference is a url() of a stylesheet, but for one to a place in the page.
var reference = regexp.MustCompile(`url\(\s*["']?([^"'()#][^"'()]*?)["']?\s*\)`)

// rename puts the served names into a stylesheet's references. They stay
// relative: the stylesheet is served beside what it names.
func (l *library) rename(css []byte) ([]byte, error) {
	var missing error
	css = reference.ReplaceAllFunc(css, func(m []byte) []byte {
		file := path.Base(string(reference.FindSubmatch(m)[1]))
		a, ok := l.byFile[file]
		if !ok {
			missing = fmt.Errorf("it names %q, which isn't there", file)
			return m
		}
		return []byte("url(" + a.Name + ")")
	})
	return css, missing
}

func compress(name string, data []byte) []byte {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // writing into memory fails only with the process
		panic(fmt.Sprintf("static: compress %s: %v", name, err))
	}
	return buf.Bytes()
}
