package browser

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Paper says as of when it is, by the server's clock; of a page that follows its
// session that is when it was printed, not when it was opened.
func TestLive_PrintedPageSaysAsOfWhen(t *testing.T) {
	t.Parallel()
	l := watch(t, steps("echo one"), asking)
	b := l.b
	l.reach("waiting")
	opened := b.attr("#as-of", "datetime")
	if eval[bool](b, has(sel("as-of"))+".checkVisibility()") {
		t.Error("it stands on the screen too")
	}
	b.until("the server's clock went on", "new Date(holdfast.now()) - new Date("+quote(opened)+") > 1000")
	b.call("look at paper", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return err
	})
	eval[bool](b, "window.dispatchEvent(new Event('beforeprint'))")
	b.until("it is on paper", has(sel("as-of"))+".checkVisibility()")
	printed := b.attr("#as-of", "datetime")
	if printed <= opened {
		t.Errorf("it was opened at %s, and is said to be printed as of %s", opened, printed)
	}
	if !eval[bool](b, "document.querySelector('#as-of').textContent === new Date("+quote(printed)+").toUTCString().slice(5, 25).replace(/^0/, '')") {
		t.Errorf("as of %s reads %q", printed, b.text("#as-of"))
	}
}
