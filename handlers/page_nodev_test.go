//go:build !dev

package handlers

import (
	"net/http"
	"testing"

	"holdfast/store/storetest"
)

func TestDevComponents_OnlyInDevelopment(t *testing.T) {
	w := newWorld(t, storetest.New(t, "sqlite"))
	for _, path := range []string{"/dev/components", "/dev"} {
		if a := w.do(t, get, path, browser(w.alice)); a.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, a.status)
		}
	}
}
