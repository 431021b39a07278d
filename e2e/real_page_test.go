//go:build agents

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// watched is what a page that is open is told by its stream: HTML, as the browser
// puts it into the page.
type watched struct {
	t *testing.T

	mu    sync.Mutex
	all   strings.Builder
	seq   int64
	ended error
	more  chan struct{} // closed and replaced at each message
}

// watch follows a session's page from its first entry, until the test ends.
func (b *browser) watch(id string) *watched {
	b.t.Helper()
	w := &watched{t: b.t, more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan struct{})
	b.t.Cleanup(func() { cancel(); <-done })
	client := *b.http
	client.Timeout = 0 // it stays open
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+"/sessions/"+id+"/stream?after=0", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := client.Do(req) //nolint:bodyclose // by who reads it
	if err != nil || res.StatusCode != http.StatusOK {
		b.t.Fatalf("follow the page: %v, %+v", err, res)
	}
	go func() {
		defer close(done)
		defer func() { _ = res.Body.Close() }()
		w.read(&stream{t: b.t, sc: bufio.NewReader(res.Body)})
	}()
	return w
}

func (w *watched) read(st *stream) {
	for {
		m, err := st.next()
		w.mu.Lock()
		w.ended = err
		if m.id > 0 {
			w.seq = m.id
		}
		w.all.WriteString(m.data + "\n")
		close(w.more)
		w.more = make(chan struct{})
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits until elements that the page was told say all of these, as a person
// reads them.
func (w *watched) until(css string, words ...string) {
	w.t.Helper()
	for late := time.After(patience); ; {
		w.mu.Lock()
		html, more, ended := w.all.String(), w.more, w.ended
		w.mu.Unlock()
		gap := missing(readable(w.t, html, css), words)
		switch {
		case gap == "":
			return
		case ended != nil:
			w.t.Fatalf("the page's stream ended before %s said %q: %v", css, gap, ended)
		}
		select {
		case <-more:
		case <-late:
			w.t.Fatalf("of %s the page was never told %q:\n%s", css, gap, tail(html, 6000))
		}
	}
}

// notYet fails if such elements have said this.
func (w *watched) notYet(css, words string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if text := readable(w.t, w.all.String(), css); strings.Contains(text, words) {
		w.t.Errorf("the page says %q already", words)
	}
}

func missing(text string, words []string) string {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

// readable is what is read in such elements of HTML, with single blanks.
func readable(t *testing.T, html, css string) string {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(html))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	doc.Find(css).Each(func(_ int, e *goquery.Selection) { out = append(out, strings.Fields(e.Text())...) })
	return strings.Join(out, " ")
}

// answers answers a request on its session's page, as a person without script does.
func (b *browser) answers(sessionID, requestID, reply, note string) {
	b.t.Helper()
	b.visit("/sessions/" + sessionID)
	b.submit(fmt.Sprintf("/permissions/%s/decision", requestID), map[string]string{"reply": reply, "message": note})
}
