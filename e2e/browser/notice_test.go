package browser

import (
	"strings"
	"testing"
)

// What was said of a form is said once: a reload doesn't say it again. The rest of the
// address stays, and the focus where it was.
func TestNotice_IsSaidOnce(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one"))
	l.reach("ready")
	b, notice := l.b, sel("notice")
	b.visit(l.path() + "?before=999&notice=recorded&seq=2")
	b.until("it is told", says(notice, "Recorded as entry #0002: your message."))
	b.until("the address is the page's", "location.search === '?before=999'")
	if at := eval[string](b, "document.activeElement.tagName"); at != "BODY" {
		t.Errorf("the focus is at %s", at)
	}
	b.visit(strings.TrimPrefix(eval[string](b, "location.href"), eval[string](b, "location.origin")))
	if eval[bool](b, "!!"+has(notice)) {
		t.Errorf("it is told again: %s", b.text(notice))
	}
}
