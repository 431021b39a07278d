package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/emulation"
	console "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is one page in Chromium.
type tab struct {
	t    *testing.T
	w    *world
	ctx  context.Context
	base string

	mu         sync.Mutex
	complaints []string
	allowed    []string
}

// tab opens a tab in a browser context of its own: with no cookies, and no
// storage, of any other.
func (w *world) tab(base string) *tab {
	w.t.Helper()
	b := newTab(chromium(w.t), w.t, w, base, chromedp.WithNewBrowserContext())
	w.t.Cleanup(b.wantSilence) // before the tab is closed
	return b
}

func newTab(parent context.Context, t *testing.T, w *world, base string, with ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, w: w, base: base}
	ctx, cancel := chromedp.NewContext(parent, with...)
	b.ctx = ctx
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatalf("listen to a tab: %v", err)
	}
	b.call("focus emulation", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	})
	b.width(1280)
	return b
}

// hear notes what a page complains of, and closes its dialogs.
func (b *tab) hear(ev any) {
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError {
			var text []string
			for _, a := range ev.Args {
				text = append(text, strings.TrimSpace(a.Description+" "+string(a.Value)))
			}
			b.complain("console.error: " + strings.Join(text, " "))
		}
	case *runtime.EventExceptionThrown:
		text := ev.ExceptionDetails.Text
		if ev.ExceptionDetails.Exception != nil {
			text += " " + ev.ExceptionDetails.Exception.Description
		}
		b.complain("exception: " + text)
	case *console.EventEntryAdded:
		if ev.Entry.Level == console.EntryLevelError || strings.Contains(ev.Entry.Text, "Content Security Policy") {
			b.complain(fmt.Sprintf("%s: %s (%s)", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		b.complain(fmt.Sprintf("dialog %s: %s", ev.Type, ev.Message))
		go func() {
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) // the tab may be gone
		}()
	}
}

func (b *tab) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, what)
}

// allow lets complaints pass that hold a text: a test that cuts a connection, or
// asks for what isn't there, expects to hear of it.
func (b *tab) allow(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, texts...)
}

// heard gives the complaints so far, but those that are allowed.
func (b *tab) heard() []string {
	var marker bool
	_ = b.try(&marker, "true") // what the page said before has arrived with this answer
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, c := range b.complaints {
		ok := false
		for _, a := range b.allowed {
			ok = ok || strings.Contains(c, a)
		}
		if !ok {
			out = append(out, c)
		}
	}
	return out
}

// lend gives the tab to a subtest, which fails of what it complains until then.
func (b *tab) lend(t *testing.T) (back func()) {
	t.Helper()
	owner := b.t
	b.t = t
	return func() {
		b.wantSilence()
		b.mu.Lock()
		b.complaints, b.allowed = nil, nil
		b.mu.Unlock()
		b.t = owner
	}
}

// wantSilence fails the test if a page complained of anything.
func (b *tab) wantSilence() {
	if got := b.heard(); len(got) > 0 {
		b.t.Errorf("the pages complain:\n%s", strings.Join(got, "\n"))
	}
}

// call runs something in the tab, for as long as a test has patience.
func (b *tab) call(what string, f func(ctx context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := f(ctx); err != nil {
		b.t.Fatalf("%s: %v", what, err)
	}
}

// try evaluates an expression in the page; it fails while the page changes.
func (b *tab) try(out any, js string) error {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](js, chromedp.EvalAwaitPromise))
	if err != nil {
		return err
	}
	if len(raw) == 0 { // undefined
		raw = []byte("null")
	}
	return json.Unmarshal(raw, out)
}

// eval evaluates an expression in the page; a promise is awaited.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	var out T
	if err := b.try(&out, js); err != nil {
		b.t.Fatalf("evaluate %s: %v", tail(js, 300), err)
	}
	return out
}

// until waits until an expression of the page is true. It is asked again after
// each short pause, so that it may hold only on a page that is yet to come.
func (b *tab) until(what, js string) {
	b.t.Helper()
	b.within(patience, what, js)
}

// within is until with a bound of its own.
func (b *tab) within(bound time.Duration, what, js string) {
	b.t.Helper()
	look := time.NewTicker(25 * time.Millisecond)
	defer look.Stop()
	late := time.After(bound)
	for {
		var is bool
		err := b.try(&is, "!!("+js+")")
		if err == nil && is {
			return
		}
		select {
		case <-look.C:
		case <-late:
			b.t.Fatalf("%s: waited in vain (%s) until %s (%v)\n%s", b.location(), bound, what, err, tail(b.text("body"), 3000))
		}
	}
}

// location is the address of the page, without the server's own.
func (b *tab) location() string {
	var at string
	_ = b.try(&at, "location.href")
	return strings.TrimPrefix(at, b.base)
}

// visit opens a page that answers 200.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.visitFor(http.StatusOK, path)
}

// visitFor opens a page and fails unless it answers with the status.
func (b *tab) visitFor(status int, path string) {
	b.t.Helper()
	if status >= http.StatusBadRequest {
		b.allow(fmt.Sprintf("the server responded with a status of %d", status))
	}
	b.call("open "+path, func(ctx context.Context) error {
		res, err := chromedp.Run(ctx, chromedp.NavigateResponse(b.base+path))
		if err == nil && res != nil && int(res.Status) != status {
			b.t.Fatalf("%s answered %d, want %d:\n%s", path, res.Status, status, tail(b.text("body"), 2000))
		}
		return err
	})
}

// reload loads the page again, as the browser's own button does.
func (b *tab) reload() {
	b.t.Helper()
	b.call("reload", func(ctx context.Context) error { return chromedp.Do(ctx, chromedp.Reload()) })
}

// post opens what a form posts to, with fields that the form may not let through,
// and fails unless the address answers with the status.
func (b *tab) post(status int, path string, fields map[string]string) {
	b.t.Helper()
	b.visit("/help") // a page of ours, so that the form comes from where it must
	if status >= http.StatusBadRequest {
		b.allow(fmt.Sprintf("the server responded with a status of %d", status))
	}
	raw, _ := json.Marshal(fields) // texts always can be
	b.call("post to "+path, func(ctx context.Context) error {
		res, err := chromedp.RunResponse(ctx, chromedp.Evaluate[chromedp.Void](`(() => {
			const form = document.createElement('form');
			form.method = 'post';
			form.action = `+quote(path)+`;
			for (const [name, value] of Object.entries(`+string(raw)+`)) {
				const field = document.createElement('textarea');
				field.name = name;
				field.value = value;
				form.append(field);
			}
			document.body.append(form);
			form.submit();
		})()`))
		if err == nil && int(res.Status) != status {
			b.t.Fatalf("a post to %s led to %d, want %d:\n%s", path, res.Status, status, tail(b.text("body"), 2000))
		}
		return err
	})
}

// leaving does something by which the page is left, and waits for the next one.
func (b *tab) leaving(do func()) {
	b.t.Helper()
	eval[bool](b, "document.left = true")
	do()
	b.until("the next page is there", "!document.left && document.readyState === 'complete'")
}

// signIn signs the world's user in.
func (b *tab) signIn() {
	b.t.Helper()
	b.signInAs(b.w.email)
}

func (b *tab) signInAs(email string) {
	b.t.Helper()
	b.visit("/login")
	b.fill("#email", email)
	b.fill("#password", b.w.pass)
	b.leaving(func() { b.key(keyEnter) })
	if at := b.location(); at != "/" {
		b.t.Fatalf("signing in led to %s:\n%s", at, tail(b.text("body"), 2000))
	}
}

// sel finds elements by their test id.
func sel(id string) string { return fmt.Sprintf("[data-testid=%q]", id) }

// quote writes a text as JavaScript does.
func quote(s string) string {
	raw, _ := json.Marshal(s) // a string always can be
	return string(raw)
}

// text is the visible text of the first element; "" if there is none.
func (b *tab) text(css string) string {
	var s string
	_ = b.try(&s, "(document.querySelector("+quote(css)+") || {innerText: ''}).innerText")
	return s
}

// count counts elements.
func (b *tab) count(css string) int {
	b.t.Helper()
	return eval[int](b, "document.querySelectorAll("+quote(css)+").length")
}

// attr is an attribute of the first element; "" if either is missing.
func (b *tab) attr(css, name string) string {
	b.t.Helper()
	return eval[string](b, "document.querySelector("+quote(css)+")?.getAttribute("+quote(name)+") ?? ''")
}

// has is an expression that is true when there is such an element.
func has(css string) string { return "document.querySelector(" + quote(css) + ")" }

// shows is an expression that is true when a reading is in a state.
func shows(reading, state string) string {
	return has(fmt.Sprintf(`[data-testid="reading-%s"][data-state=%q]`, reading, state))
}

// width sets the width of the viewport.
func (b *tab) width(px int64) {
	b.t.Helper()
	height := int64(900)
	if px < 1000 {
		height = 844
	}
	b.call("set the viewport", func(ctx context.Context) error {
		return chromedp.Do(ctx, chromedp.EmulateViewport(px, height))
	})
}

// theme prefers a colour scheme: light or dark.
func (b *tab) theme(scheme string) {
	b.t.Helper()
	b.call("prefer a colour scheme", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme},
				// What fades in would have other colours while axe looks.
				{Name: "prefers-reduced-motion", Value: "reduce"},
			},
		})
		return err
	})
}

// withoutScript runs no script of pages that are opened from now on; what the
// test evaluates still runs.
func (b *tab) withoutScript() {
	b.t.Helper()
	b.call("turn scripts off", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
}

// style adds a stylesheet to the page as its inspector does: a style of the page
// itself would be refused by the CSP. It lasts until the next page, or unstyle.
func (b *tab) style(text string) (unstyle func()) {
	b.t.Helper()
	var sheet cdp.StyleSheetID
	b.call("add a stylesheet", func(ctx context.Context) error {
		tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return err
		}
		made, err := chromedp.Call(ctx, css.CreateStyleSheet, css.CreateStyleSheetParams{FrameID: tree.FrameTree.Frame.ID, Force: new(true)})
		sheet = made.StyleSheetID
		return err
	})
	set := func(text string) {
		b.call("write a stylesheet", func(ctx context.Context) error {
			_, err := chromedp.Call(ctx, css.SetStyleSheetText, css.SetStyleSheetTextParams{StyleSheetID: sheet, Text: text})
			return err
		})
	}
	set(text)
	return func() { set("") }
}

// spacing is the text spacing that WCAG 1.4.12 lets a reader choose.
const spacing = `* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important }
p { margin-bottom: 2em !important }`
