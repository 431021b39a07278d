package browser

import (
	"strings"
	"testing"
)

// A check that cannot fail proves nothing: each is shown a page that it must
// refuse.
func TestControls_TheChecksCanFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	b := w.tab(s.base)
	b.visit("/login")

	if got := b.axe(); len(got) != 0 {
		t.Errorf("the sign-in page breaks %v", got)
	}
	eval[bool](b, "document.querySelector('label[for=email]').remove(), true")
	if got := b.axe(); len(got) != 1 || got[0].ID != "label" || !strings.Contains(got[0].String(), "#email") {
		t.Errorf("a field without a label: axe finds %v", got)
	}

	b.width(320)
	unstyle := b.style("main { width: 400px !important }")
	if got := b.overflow(); !strings.Contains(got, "main") {
		t.Errorf("of a page that is too wide it says %q", got)
	}
	unstyle()
	if got := b.overflow(); got != "" {
		t.Errorf("without that style it says %q", got)
	}
	b.width(1280)

	if got := b.walk(); len(got) != 0 {
		t.Errorf("the walk finds %v", got)
	}
	unstyle = b.style("* { outline: none !important; box-shadow: none !important }")
	if got := b.walk(); !strings.Contains(strings.Join(got, "\n"), "nothing shows it") {
		t.Errorf("without rings the walk finds %q", got)
	}
	unstyle()
	unstyle = b.style("header { position: fixed !important; inset: 0 !important; height: 100vh !important; background: white; z-index: 9 }")
	if got := b.walk(); !strings.Contains(strings.Join(got, "\n"), "covered by") {
		t.Errorf("under a cover the walk finds %q", got)
	}
	unstyle()

	if got := b.injected(); len(got) != 0 {
		t.Errorf("the sign-in page has %q", got)
	}
	eval[bool](b, `(document.querySelector('main').insertAdjacentHTML('beforeend', '<b id="injected"></b><a href="javascript:void 0">x</a>'), true)`)
	if got := b.injected(); len(got) != 2 {
		t.Errorf("of two injected elements it finds %q", got)
	}

	if got := b.heard(); len(got) != 0 {
		t.Errorf("heard %q", got)
	}
	for js, want := range map[string]string{
		"document.body.setAttribute('style', 'color: red')": "Content Security Policy",
		"setTimeout(() => { throw new Error('thrown') })":   "thrown",
		"console.error('said')":                             "said",
		"setTimeout(() => alert('asked'))":                  "dialog alert: asked",
		"fetch('https://example.org/')":                     "Content Security Policy",
	} {
		eval[bool](b, "("+js+", true)")
		eventually(t, "the tab hears "+want, func() bool { return strings.Contains(strings.Join(b.heard(), "\n"), want) })
		b.mu.Lock()
		b.complaints = nil
		b.mu.Unlock()
	}
	b.allow("") // what else they led to
}
