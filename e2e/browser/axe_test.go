package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// axeSource is the axe-core that package-lock.json pins.
var axeSource = sync.OnceValues(func() (string, error) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		return "", fmt.Errorf("there is no axe-core (run the tests by make, or by scripts/chromium -- go test ./e2e/browser): %w", err)
	}
	return string(raw), nil
})

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		Target         []json.RawMessage
		HTML           string
		FailureSummary string
	}
}

func (v violation) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s", v.ID, v.Help)
	for i, n := range v.Nodes {
		if i == 5 {
			fmt.Fprintf(&out, "\n\t… and %d more", len(v.Nodes)-i)
			break
		}
		var at []string
		for _, part := range n.Target {
			at = append(at, string(part))
		}
		fmt.Fprintf(&out, "\n\t%s\n\t\t%s\n\t\t%s", strings.Join(at, " "), tail(n.HTML, 300), strings.ReplaceAll(n.FailureSummary, "\n", "; "))
	}
	return out.String()
}

// axe opens every details of the page and holds it against axe-core: the rules
// of WCAG 2.0 to 2.2, A and AA, and its best practices; or those that are named.
func (b *tab) axe(rules ...string) []violation {
	b.t.Helper()
	source, err := axeSource()
	if err != nil {
		b.t.Fatal(err)
	}
	if !eval[bool](b, "typeof axe === 'object'") {
		eval[bool](b, source+"\n;true") // a script tag would be stopped by the CSP
	}
	eval[bool](b, "document.querySelectorAll('details').forEach(d => { d.open = true }), true")
	only, _ := json.Marshal(rules) // strings always can be
	if len(rules) == 0 {
		only = []byte("['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']")
	}
	found := eval[[]violation](b, `axe.run(document, {
		runOnly: `+string(only)+`,
		resultTypes: ['violations'],
	}).then(r => r.violations.map(v => ({ID: v.id, Help: v.help,
		Nodes: v.nodes.map(n => ({Target: n.target, HTML: n.html, FailureSummary: n.failureSummary}))})))`)
	if b.count(sel("auto-off")) > 0 {
		// A page that its reader told to refresh itself, and can tell to stop (WCAG 2.2.1).
		found = slices.DeleteFunc(found, func(v violation) bool { return v.ID == "meta-refresh" })
	}
	return found
}

// overflow says by what the page scrolls sideways; "" it doesn't.
func (b *tab) overflow() string {
	b.t.Helper()
	got := eval[struct {
		Wide, Room int
		Out        []string
	}](b, `(() => {
		const room = document.documentElement.clientWidth, out = [];
		for (const el of document.querySelectorAll('body *')) {
			const box = el.getBoundingClientRect();
			if (box.right > room + 1 && box.width > 0 && !el.closest('.vh, .skip') && out.length < 5)
				out.push(el.tagName.toLowerCase() + (el.id ? '#' + el.id : '') + '.' + String(el.getAttribute('class')) + ' ends at ' + Math.round(box.right));
		}
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let node; out.length < 5 && (node = texts.nextNode()); ) { // a text may stick out of its element
			const range = document.createRange();
			range.selectNodeContents(node);
			for (const box of range.getClientRects())
				if (box.right > room + 1 && !node.parentElement.closest('.vh, .skip')) { out.push('the text “' + node.data.trim().slice(0, 60) + '” ends at ' + Math.round(box.right)); break; }
		}
		return {wide: document.documentElement.scrollWidth, room, out};
	})()`)
	if got.Wide <= got.Room {
		return ""
	}
	return fmt.Sprintf("the page is %d px wide in a window of %d: %s", got.Wide, got.Room, strings.Join(got.Out, "; "))
}
