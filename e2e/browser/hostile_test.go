package browser

import (
	"net/http"
	"strings"
	"testing"
)

// hostile is text that would act if anything took it for markup, a script, a
// link or an event of a stream.
const hostile = `<script>alert('script')</script><img src=x onerror="alert('image')"><svg onload="alert('svg')"></svg>` +
	`"><iframe src="javascript:alert(1)"></iframe></textarea></title></pre><b id="injected">bold</b>` +
	`<style>body { display: none }</style><form action="https://evil.example/"><button>Allow once</button></form>` +
	` javascript:alert(2) {{7*7}} ${7*7} &lt;u&gt; <!-- <a href="javascript:alert(3)" hx-get="https://evil.example/" hx-on:click="alert(4)">link</a>`

// What an agent says, a person types and a command prints is text wherever it
// stands: nothing of it is run, no element comes of it, and no dialog opens.
// proves JRN-8
func TestHostileText_IsNeverInterpreted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	a := s.api()
	echo := "cat <<'END'\n" + hostile + "\nid: 999\nevent: gone\n\ndata: x\n\x1b[31mred\x1b]8;;javascript:alert(5)\x07link\nEND"

	ready := a.mission("# "+hostile+"\n\n"+steps(echo)+"\n"+hostile, titled(hostile[:180]))
	for a.until(ready, "waiting", "ready").State == "waiting" { // a rule sees that it hides something
		for _, r := range a.pending(ready) {
			a.decide(r.ID, "once")
		}
	}
	waiting := a.mission("# "+hostile+"\n\n"+steps("echo '"+strings.ReplaceAll(hostile, "'", `'\''`)+"'"), asking)
	a.until(waiting, "waiting")
	a.prompt(waiting, hostile, "queue")
	a.prompt(waiting, hostile, "steer")

	b := w.tab(s.base)
	b.signIn()
	for _, path := range []string{
		"/", "/?q=alert", "/needs-you", "/sessions/" + ready, "/sessions/" + waiting, "/sessions/" + waiting + "/stop",
		"/permissions/" + a.pending(waiting)[0].ID, "/calls/" + a.calls(ready)[0].ID + "/output", "/calls/" + a.calls(ready)[0].ID + "/output?download=0",
	} {
		b.visit(path)
		wantInert(t, b)
		if !strings.Contains(eval[string](b, "document.body.textContent"), "alert(") {
			t.Errorf("%s doesn't show the text at all", path)
		}
	}
	b.post(http.StatusUnprocessableEntity, "/sessions/"+waiting+"/prompts", map[string]string{"text": hostile, "delivery": hostile, "idempotency_key": "hostile-1"})
	wantInert(t, b)
	b.visit("/?q=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E%3Cb%20id=injected%3E")
	wantInert(t, b)
}

// wantInert fails if something of the hostile text acts.
func wantInert(t *testing.T, b *tab) {
	t.Helper()
	if got := b.injected(); len(got) > 0 {
		t.Errorf("%s has what a hostile text brought: %q", b.location(), got)
	}
}

// injected gives the elements that can only have come of the hostile text.
func (b *tab) injected() []string {
	b.t.Helper()
	return eval[[]string](b, `(() => {
		const found = [...document.querySelectorAll('#injected, iframe, img, script:not([src]), style, [onerror], [onload], form[action^="http"], [hx-on\\:click]')];
		const links = [...document.querySelectorAll('a[href]')].filter(a => a.protocol === 'javascript:');
		const hidden = getComputedStyle(document.body).display === 'none' ? [document.body] : [];
		return [...found, ...links, ...hidden].map(e => e.outerHTML.slice(0, 200));
	})()`)
}
