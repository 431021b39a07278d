package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"sync"
)

// Prefix is the folder under which assets are served.
const Prefix = "/static/"

//go:embed app.css
var appCSS []byte

// Asset is one file.
type Asset struct {
	Name string // with its hash: app.0123456789ab.css
	Type string // of its content
	Data []byte
	Gzip []byte // the same, compressed
}

// Path is where the asset is served.
func (a Asset) Path() string { return Prefix + a.Name }

// assets are made once; compressing is left to the first who asks.
var assets = sync.OnceValue(func() map[string]Asset {
	css := asset("app", "css", "text/css; charset=utf-8", appCSS)
	return map[string]Asset{css.Name: css}
})

func asset(stem, ext, kind string, data []byte) Asset {
	sum := sha256.Sum256(data)
	a := Asset{Name: stem + "." + hex.EncodeToString(sum[:])[:12] + "." + ext, Type: kind, Data: data}
	var buf bytes.Buffer
	// Writing into memory fails only with the process.
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("compress %s: %v", a.Name, err))
	}
	a.Gzip = buf.Bytes()
	return a
}

// Find gives the asset of that name, hash included; an old hash is not found.
func Find(name string) (Asset, bool) {
	a, ok := assets()[name]
	return a, ok
}

// StylesheetPath is where the stylesheet of this build is served.
func StylesheetPath() string {
	for _, a := range assets() {
		if a.Type == "text/css; charset=utf-8" {
			return a.Path()
		}
	}
	return ""
}
