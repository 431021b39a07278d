package browser

import (
	"fmt"
	"strings"
	"testing"
)

// The footer of a short page stands at the end of the window; that of a long one
// after all else, and covers nothing.
func TestLayout_Footer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	b := w.tab(s.base)
	foot := func(short bool, path string) {
		t.Helper()
		for _, width := range []int64{1280, 390} {
			b.width(width)
			b.visit(path)
			at := eval[struct{ Foot, Main, Window, Whole int }](b, `(() => {
				const bottom = (css) => Math.round(document.querySelector(css).getBoundingClientRect().bottom + scrollY);
				return { Foot: bottom('.foot'), Main: bottom('main'), Window: innerHeight, Whole: document.documentElement.scrollHeight };
			})()`)
			if at.Foot != at.Whole || at.Main >= at.Foot || short != (at.Whole == at.Window) {
				t.Errorf("%s, %d px: %+v", path, width, at)
			}
		}
	}
	foot(true, "/login")
	b.signIn()
	foot(true, "/needs-you")
	foot(false, "/help")
}

// bands are the stretches of main's middle in which nothing is drawn, from 72 pixels on.
func (b *tab) bands() []string {
	b.t.Helper()
	return eval[[]string](b, `(() => {
		const spans = [];
		const add = (r) => { if (r.width > 1 && r.height > 1) spans.push([r.top + scrollY, r.bottom + scrollY]); };
		for (const el of document.querySelectorAll('main *')) {
			const style = getComputedStyle(el), r = el.getBoundingClientRect();
			if (!el.checkVisibility({ visibilityProperty: true }) || style.clipPath !== 'none') continue;
			if (el.matches('textarea, input, select, button, svg, .btn, .cmd, .out')) add(r);
			if (parseFloat(style.borderTopWidth) > 0) add({ ...{ top: r.top, bottom: r.top + 2, width: r.width, height: 2 } });
			if (parseFloat(style.borderBottomWidth) > 0) add({ ...{ top: r.bottom - 2, bottom: r.bottom, width: r.width, height: 2 } });
			for (const n of el.childNodes) {
				if (n.nodeType !== 3 || !n.data.trim()) continue;
				const range = document.createRange();
				range.selectNodeContents(n);
				for (const one of range.getClientRects()) add(one);
			}
		}
		spans.sort((a, b) => a[0] - b[0]);
		const out = [];
		let end = document.querySelector('main').getBoundingClientRect().top + scrollY;
		for (const [from, to] of spans) {
			if (from - end >= 72) out.push('nothing from ' + Math.round(end) + ' to ' + Math.round(from));
			end = Math.max(end, to);
		}
		return out;
	})()`)
}

// No page has a hole where something stands at other times: a notice that isn't
// there, or has gone.
func TestLayout_NoEmptyBands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve(w.offers()...)
	a, b := s.api(), w.tab(s.base)
	b.signIn()
	asks := a.mission(steps("echo one"), asking)
	a.until(asks, "waiting")
	ran := a.mission(steps("echo one"))
	a.untilQuiet(ran, "ready")
	for _, path := range []string{
		"/", "/needs-you", "/sessions/new", "/settings", "/settings/agents", "/settings/agents/gone", "/settings/credentials", "/running",
		"/sessions/" + asks, "/sessions/" + ran, "/sessions/" + ran + "?notice=recorded&seq=2", "/permissions/" + a.pending(asks)[0].ID,
	} {
		for _, width := range []int64{1280, 390} {
			b.width(width)
			b.visit(path)
			for _, fault := range b.bands() {
				t.Errorf("%s, %d px: %s", path, width, fault)
			}
		}
	}
}

// Whoever comes from a notification sees what is asked, where, and the buttons, in
// one window: a short command whole, of a long one the beginning, in a box that
// scrolls by keyboard too and says how long it is. All of it stands before the buttons.
// proves PER-2
func TestLayout_AnswersAreNear(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	text := func(lines int) string {
		return "cat <<'EOF'\n" + strings.Repeat("a line of a report that is written here\n", lines-2) + "EOF"
	}
	s := w.serve(w.askers(map[string]string{"one-line": "echo hello", "four-lines": text(4), "many-lines": text(40)})...)
	a, b := s.api(), w.tab(s.base)
	b.signIn()
	for _, one := range []struct {
		agent   string
		command string
		scrolls bool
		onCard  bool
	}{
		{"runbook", "echo hello", false, true},
		{"runbook", text(4), false, true},
		{"runbook", text(40), true, true},
		{"runbook", text(200), true, false},
		{"one-line", "echo hello", false, true},
		{"four-lines", text(4), false, true},
		{"many-lines", text(40), true, true},
	} {
		id := a.mission(steps(one.command), asking, func(body map[string]any) { body["agent"] = one.agent })
		a.until(id, "waiting")
		request := a.pending(id)[0].ID
		paths := []string{"/permissions/" + request}
		if one.onCard {
			paths = append(paths, "/sessions/"+id)
		}
		for _, path := range paths {
			for _, width := range []int64{390, 1280} {
				b.width(width)
				b.visit(path)
				what := fmt.Sprintf("%s, %s, %d lines, %d px", path, one.agent, strings.Count(one.command, "\n")+1, width)
				got := b.nearest()
				if got.Top < 0 || got.Bottom > got.Window || !got.After || !got.Focus {
					t.Errorf("%s: %+v", what, got)
				}
				if got.Scrolls != one.scrolls || (got.Hint != "") != one.scrolls {
					t.Errorf("%s: it scrolls: %v, and it is said %q", what, got.Scrolls, got.Hint)
				}
				if strings.TrimSpace(got.Text) != one.command || one.agent == "runbook" && !strings.Contains(got.Where, w.work) {
					t.Errorf("%s: it shows %q, in %q", what, got.Text, got.Where)
				}
			}
		}
		a.decide(request, "once")
	}
}

// near is what of a request is in the window.
type near struct {
	Top, Bottom, Window   int
	Scrolls, Focus, After bool
	Text, Where, Hint     string
}

// nearest measures the first card of a page: from its text to the button that denies.
func (b *tab) nearest() near {
	b.t.Helper()
	return eval[near](b, `(() => {
		const card = document.querySelector('.card-ask'), box = card.querySelector('[data-testid=payload]'), button = card.querySelector('button[value=once]');
		const place = card.querySelector('[data-testid=asked-facts]'), hint = card.querySelector('[data-testid=scrolls]'), last = card.querySelector('button[value=reject]');
		box.focus();
		const before = (el) => !el || !!(el.compareDocumentPosition(button) & Node.DOCUMENT_POSITION_FOLLOWING);
		return { Top: Math.round(box.getBoundingClientRect().top), Bottom: Math.round(Math.max(button.getBoundingClientRect().bottom, last.getBoundingClientRect().bottom)), Window: innerHeight, Scrolls: box.scrollHeight > box.clientHeight + 1,
			Focus: document.activeElement === box && !!box.getAttribute('aria-label'), After: before(box) && before(place), Text: box.textContent, Where: place ? place.innerText : '', Hint: hint?.checkVisibility() ? hint.innerText : '' };
	})()`)
}
