//go:build dev

package handlers

import (
	"net/http"
	"testing"

	"holdfast/store/storetest"
)

func TestDevComponents(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"))
	a := w.do(t, get, "/dev/components?theme=dark", browser(w.alice))
	doc := fragment(t, string(a.body))
	if n := doc.Find("[data-component]").Length(); a.status != http.StatusOK || n < 100 || doc.Find("html").AttrOr("data-theme", "") != "dark" {
		t.Errorf("got %d with %d components", a.status, n)
	}
	if a := w.do(t, get, "/dev/components"); a.status != http.StatusSeeOther {
		t.Errorf("nobody got %d", a.status)
	}
}
