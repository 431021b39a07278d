package browser

import (
	"context"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const (
	keyTab   = kb.Tab
	keyEnter = kb.Enter
	keySpace = " "
	keyDown  = kb.ArrowDown
	keyUp    = kb.ArrowUp
	keyEsc   = kb.Escape
)

// mostStops is how many stops a way through a page may have.
const mostStops = 600

// key presses keys, one after the other. A key and its character are one event,
// as from a keyboard: a page that takes the key gets no character.
func (b *tab) key(keys string, with ...chromedp.Modifier) {
	b.t.Helper()
	b.call("press a key", func(ctx context.Context) error {
		for _, r := range keys {
			for _, event := range pressed(r, with) {
				if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, event); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// pressed are the events of a key that is pressed and let go.
func pressed(r rune, with []chromedp.Modifier) []input.DispatchKeyEventParams {
	var out []input.DispatchKeyEventParams
	for _, k := range kb.Encode(r) {
		chromedp.KeyModifiers(with...)(k)
		switch {
		case k.Type != kb.KeyChar:
			out = append(out, *k)
		case k.Modifiers&^int64(chromedp.ModifierShift) == 0 && len(out) > 0:
			down := &out[len(out)-1]
			down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, k.Text, k.UnmodifiedText
		}
	}
	return out
}

// typeText types into what has the focus. Long texts come at once, as from the
// clipboard: Enter would act in some fields.
func (b *tab) typeText(text string) {
	b.t.Helper()
	if len(text) <= 40 && !strings.ContainsAny(text, "\r\n") {
		b.key(text)
		return
	}
	b.call("paste", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: text})
		return err
	})
}

// focus is what has the focus, and how it can be seen.
type focus struct {
	Is     string // in words, for messages
	Number int    // of the stop on this page, from 1; 0: the page itself, which is no stop
	Hidden string // why it cannot be seen; "" it can
	NoRing bool   // nothing shows that it has the focus
	At     bool   // it is what was looked for
}

// lookAtFocus describes the focused element. It is hidden when it has no area, lies
// outside of the window, or something else is painted over it: of the nine points
// looked at in the part inside of the window all must show, or one if it is large.
const lookAtFocus = `(want => {
	const el = document.activeElement;
	if (!el || el === document.body || el === document.documentElement) return {is: 'the page', number: 0, hidden: '', noRing: false, at: false};
	document.stops ||= new Map();
	if (!document.stops.has(el)) document.stops.set(el, document.stops.size + 1);
	const name = (el.getAttribute('aria-label') || el.innerText || el.name || '').trim().replace(/\s+/g, ' ').slice(0, 60);
	const out = {is: el.tagName.toLowerCase() + (el.id ? '#' + el.id : '') + ' “' + name + '”', number: document.stops.get(el), hidden: '', noRing: false,
		at: want !== '' && el.matches(want)};
	const box = el.getClientRects()[0];
	if (!box || box.width < 1 || box.height < 1) { out.hidden = 'it has no area'; return out; }
	const left = Math.max(box.left, 0), right = Math.min(box.right, innerWidth), top = Math.max(box.top, 0), bottom = Math.min(box.bottom, innerHeight);
	if (right - left < 1 || bottom - top < 1) { out.hidden = 'it lies outside of the window, at ' + Math.round(box.left) + ',' + Math.round(box.top); return out; }
	let seen = 0, over = '';
	for (const fx of [0.1, 0.5, 0.9]) for (const fy of [0.15, 0.5, 0.85]) {
		const hit = document.elementFromPoint(left + (right - left) * fx, top + (bottom - top) * fy);
		if (hit && (el === hit || el.contains(hit) || hit.contains(el) && getComputedStyle(hit).position !== 'sticky' && getComputedStyle(hit).position !== 'fixed')) seen++;
		else over = hit ? hit.tagName.toLowerCase() + '.' + hit.className : 'nothing';
	}
	if (seen === 0) out.hidden = 'covered by ' + over;
	else if (seen < 9 && box.height < innerHeight / 2) out.hidden = 'covered in part by ' + over;
	const look = getComputedStyle(el);
	out.noRing = !(look.outlineStyle !== 'none' && parseFloat(look.outlineWidth) >= 2 || look.boxShadow !== 'none');
	return out;
})`

// focused describes what has the focus; want is a selector or "".
func (b *tab) focused(want string) focus {
	b.t.Helper()
	return eval[focus](b, lookAtFocus+"("+quote(want)+")")
}

// fault says what is wrong with a stop; "" nothing.
func (f focus) fault() string {
	switch {
	case f.Number == 0:
		return ""
	case f.Hidden != "":
		return fmt.Sprintf("the focus is at %s, and hidden: %s", f.Is, f.Hidden)
	case f.NoRing:
		return fmt.Sprintf("the focus is at %s, and nothing shows it", f.Is)
	}
	return ""
}

// tabTo presses Tab until what a selector finds has the focus. Each stop on the
// way must be seen.
func (b *tab) tabTo(want string) {
	b.t.Helper()
	b.until("there is "+want, has(want))
	if b.focused(want).At {
		return
	}
	pages := 0
	for range mostStops {
		b.key(keyTab)
		f := b.focused(want)
		if fault := f.fault(); fault != "" {
			b.t.Errorf("%s: on the way to %s %s", b.location(), want, fault)
		}
		if f.At {
			return
		}
		if f.Number == 0 {
			if pages++; pages > 2 {
				break
			}
		}
	}
	b.t.Fatalf("%s: Tab never reaches %s", b.location(), want)
}

// fill types a text into a field, in place of what is there.
func (b *tab) fill(field, text string) {
	b.t.Helper()
	b.tabTo(field)
	b.selectAll()
	b.typeText(text)
}

// selectAll selects what a field holds, so that typing replaces it.
func (b *tab) selectAll() {
	b.t.Helper()
	b.call("select all", func(ctx context.Context) error {
		for _, typ := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
			_, err := chromedp.Call(ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: typ, Key: "a", Code: "KeyA", WindowsVirtualKeyCode: 65, Modifiers: int64(chromedp.ModifierCtrl), Commands: []string{"selectAll"},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// press goes to a button or a link and presses it.
func (b *tab) press(what string) {
	b.t.Helper()
	b.tabTo(what)
	b.key(keyEnter)
}

// choose marks a radio button: Tab to its group, then arrows, and Space if the
// first is marked by nobody yet.
func (b *tab) choose(radio string) {
	b.t.Helper()
	name := b.attr(radio, "name")
	b.tabTo(fmt.Sprintf("input[type=radio][name=%q]", name))
	for range 20 {
		if b.focused(radio).At {
			if !eval[bool](b, has(radio)+".checked") {
				b.key(keySpace)
			}
			if !eval[bool](b, has(radio)+".checked") {
				b.t.Fatalf("%s: Space doesn't mark %s", b.location(), radio)
			}
			return
		}
		b.key(keyDown)
		if fault := b.focused("").fault(); fault != "" {
			b.t.Errorf("%s: among the radio buttons %s", b.location(), fault)
		}
	}
	b.t.Fatalf("%s: the arrows never reach %s", b.location(), radio)
}

// walk goes through a page, or the dialog that is open, from its beginning to its
// end and back, and gives what is wrong on the way.
func (b *tab) walk() []string {
	b.t.Helper()
	var faults []string
	once := map[string]bool{}
	pass := func(way, from string, with ...chromedp.Modifier) (stops int) {
		// Where the last way ended is nothing to begin at: a mark is set, and taken away again.
		eval[bool](b, `(() => {
			document.stops = new Map();
			const mark = document.createElement('span');
			mark.tabIndex = -1;
			mark.id = 'walk';
			(document.querySelector('dialog[open]') ?? document.body).`+from+`(mark);
			mark.focus();
			return true;
		})()`)
		defer eval[bool](b, "(document.getElementById('walk').remove(), true)")
		for stops = range mostStops {
			b.key(keyTab, with...)
			f := b.focused("")
			if f.Number != stops+1 { // the page itself, or round again
				break
			}
			if fault := f.fault(); fault != "" && !once[fault] {
				once[fault] = true
				faults = append(faults, way+" "+fault)
			}
			if strings.HasPrefix(f.Is, "dialog") { // one that scrolls is a stop of its own, before its first
				break
			}
		}
		return stops
	}
	there, back := pass("forwards", "prepend"), pass("backwards", "append", chromedp.ModifierShift)
	if there == 0 || there != back {
		faults = append(faults, fmt.Sprintf("there are %d stops forwards, %d backwards", there, back))
	}
	return faults
}
