package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// word is a text without a place where a line may end.
func word(n int) string { return strings.Repeat("longword", n/8+1)[:n] }

// A word that has no place to end a line at makes no page wider than its window,
// wherever it stands: a title, a command, a workspace, an address. What has to
// scroll in itself is output, and nothing else.
func TestWords_FitTheWindow(t *testing.T) {
	t.Parallel()
	w := newEmptyWorld(t, "sqlite")
	w.email = word(60) + "@" + word(60) + ".example"
	w.mustRun(w.pass+"\n", "user", "add", w.email, "--password-stdin")
	s := w.serve()
	a := s.api()
	work := filepath.Join(w.work, word(200))
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	there := func(body map[string]any) { body["workspace"], body["title"] = work, word(190) }
	up, gate := w.gate(filepath.Join(word(200), "up")), w.gate(filepath.Join(word(200), "gate"))
	waits := word(150) + "=1; " + up.Tell("$$") + "; " + gate.Read()

	lost := a.mission(steps(waits), there)
	up.Wait()
	s.powerCut()
	s.start()
	a.until(lost, "uncertain")
	asks := a.mission(steps("echo "+word(300)), there, asking)
	a.until(asks, "waiting")
	row := a.mission(steps("echo "+word(100)), there, asking) // is answered in its row
	a.until(row, "waiting")
	a.prompt(row, word(400), "queue")
	failed := a.mission(steps("echo "+word(500)+"; exit 3"), there)
	a.until(failed, "failed")
	ready := a.mission(steps("echo https://example.org/"+word(300)), there)
	a.until(ready, "ready")
	runs := a.mission(steps(waits), there)
	up.Wait()

	b := w.tab(s.base)
	paths := []string{"/login"}
	b.visit("/login")
	b.signIn()
	for _, id := range []string{lost, asks, row, failed, ready, runs} {
		paths = append(paths, "/sessions/"+id)
		for _, c := range a.calls(id) {
			paths = append(paths, "/calls/"+c.ID, "/calls/"+c.ID+"/output")
		}
		for _, r := range a.pending(id) {
			paths = append(paths, "/permissions/"+r.ID)
		}
	}
	paths = append(paths, "/", "/?q="+word(200), "/needs-you", "/running", "/settings", "/sessions/new", "/help", "/sessions/"+runs+"/stop")
	for _, path := range paths {
		b.visit(path)
		wantRoom(t, b)
	}
	b.post(422, "/sessions", map[string]string{"prompt": word(300), "workspace": "/" + word(300), "agent": word(60), "preset": "ask_all", "idempotency_key": "words-1"})
	wantRoom(t, b)
	b.post(422, "/sessions/"+ready+"/prompts", map[string]string{"text": word(300), "delivery": word(300), "idempotency_key": "words-2"})
	wantRoom(t, b)
}

// wantRoom fails if a page is wider than a window of any width, or a table of it
// scrolls in itself.
func wantRoom(t *testing.T, b *tab) {
	t.Helper()
	eval[bool](b, "document.querySelectorAll('details').forEach(d => { d.open = true }), true")
	for _, width := range []int64{320, 390, 700, 1000, 1280} {
		b.width(width)
		if got := b.overflow(); got != "" {
			t.Errorf("%s at %d px: %s", tail(b.location(), 80), width, got)
		}
		if got := b.scrolling(); len(got) > 0 {
			t.Errorf("%s at %d px: %s", tail(b.location(), 80), width, strings.Join(got, "; "))
		}
	}
}

// scrolling gives what scrolls sideways in itself, or sticks out of its box, and isn't output.
func (b *tab) scrolling() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll('main *, header *')].filter(el => el.scrollWidth > el.clientWidth + 1 && el.clientWidth > 0
		&& getComputedStyle(el).display !== 'inline' && !el.matches('input, select, textarea, .out pre') && !el.closest('.vh, svg, thead, .sign-out')).slice(0, 4)
		.map(el => el.tagName.toLowerCase() + '.' + el.className + ' has ' + el.scrollWidth + ' px in ' + el.clientWidth)`)
}
