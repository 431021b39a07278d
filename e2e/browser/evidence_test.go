//go:build evidence

package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestEvidence takes the pictures of docs/evidence.md (make evidence): each page
// wide and narrow, light and dark, and a crash in the middle of a mission.
func TestEvidence(t *testing.T) {
	g := newGallery(t)
	pages := map[string]string{
		"sessions": "/", "needs-you": "/needs-you", "new-session": "/sessions/new", "settings": "/settings", "credentials": "/settings/credentials", "running-commands": "/running", "help": "/help",
		"decision": g.session(t, "waiting"), "reconcile": g.session(t, "uncertain_output"), "running": g.session(t, "running"), "output": g.session(t, "ready_output"),
		"stopped": g.session(t, "stopped"), "limit": g.session(t, "limit_reached"), "failed": g.session(t, "failed"), "unconfirmed": g.session(t, "unconfirmed"),
		"request": g.request(t, "waiting_bidi", 0), "call": g.call(t, "uncertain_output", "unknown", 0), "stop": g.session(t, "running") + "/stop",
	}
	visitor := g.w.tab(g.s.base)
	picture(visitor, "sign-in", "/login")
	b := g.w.tab(g.s.base)
	b.signIn()
	for name, path := range pages {
		picture(b, name, path)
	}
}

// TestEvidence_Crash shows a page whose server is killed in the middle of a step.
func TestEvidence_Crash(t *testing.T) {
	w := newWorld(t, "sqlite")
	s := w.serve()
	b := w.tab(s.base)
	b.signIn()
	a := s.api()
	id := a.mission("# Prepare\n\n```sh\necho prepared\n```\n\n# Deploy\n\n```sh\nfor n in 1 2 3; do echo deploying part $n of 9; done; sleep 3600\n```\n\n# Tell\n\n```sh\necho told\n```\n")
	b.visit("/sessions/" + id)
	b.within(recovery, "it deploys", says(sel("journal"), "deploying part 3"))
	b.allow("net::ERR_")
	shoot(b, "crash-1-running")
	s.kill9()
	b.within(recovery, "it is lost", shows("your-view", "disconnected"))
	shoot(b, "crash-2-killed")
	s.start()
	b.within(recovery, "it goes on", says(sel("reading-execution"), "Still running since"))
	b.within(recovery, "it is back", shows("your-view", "live"))
	shoot(b, "crash-3-back")
	s.powerCut()
	s.start()
	b.within(recovery, "it asks", has(sel("reconcile-card")))
	b.within(recovery, "it is back", shows("your-view", "live"))
	shoot(b, "crash-4-lost")
	b.choose(sel("resolution-form") + ` input[value="in_part"]`)
	b.fill(sel("resolution-form")+" textarea", "Parts 1 to 3 are deployed; I rolled them back.")
	b.press(sel("resolution-form") + ` button[value="continue"]`)
	b.within(recovery, "it is done", shows("execution", "ready"))
	shoot(b, "crash-5-reconciled")
}

// TestEvidence_Agent shows the page of an agent that writes, outlives its server and asks.
func TestEvidence_Agent(t *testing.T) {
	agentWrites(t, func(b *tab, stage string) {
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for width, size := range map[int64]string{1280: "wide", 390: "narrow"} {
				b.width(width)
				shoot(b, "agent-"+stage+"-"+size+"-"+theme)
			}
		}
		b.theme("light")
		b.width(1280)
	})
}

// TestEvidence_Settings shows what an agent is set to, for a new session and in one.
func TestEvidence_Settings(t *testing.T) {
	agentSettings(t, func(b *tab, stage string) {
		b.until("its folds are open", "document.querySelectorAll('.agent-set details, #agent-commands').forEach(d => d.open = true) || true")
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for width, size := range map[int64]string{1280: "wide", 390: "narrow"} {
				b.width(width)
				shoot(b, "agent-settings-"+stage+"-"+size+"-"+theme)
			}
		}
	})
}

// picture takes a page in both themes and widths.
func picture(b *tab, name, path string) {
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		for width, size := range map[int64]string{1280: "wide", 390: "narrow"} {
			b.width(width)
			b.visit(path)
			shoot(b, name+"-"+size+"-"+theme)
		}
	}
}

func shoot(b *tab, name string) {
	b.until("the fonts are there", "document.fonts.status === 'loaded'")
	b.call("take a picture", func(ctx context.Context) error {
		quality := int64(70)
		out, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: "webp", Quality: &quality})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(os.Getenv("HOLDFAST_EVIDENCE"), name+".webp"), out.Data, 0o644)
	})
}

// TestEvidence_StopAndSend shows the composer of an agent that takes no text in mid-turn.
func TestEvidence_StopAndSend(t *testing.T) {
	stopAndSend(t, false, func(b *tab, stage string) {
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			for width, size := range map[int64]string{1280: "wide", 390: "narrow"} {
				b.width(width)
				eval[bool](b, "(document.querySelector('#text').scrollIntoView(), true)")
				shoot(b, "stopsend-"+strings.ReplaceAll(stage, " ", "-")+"-"+size+"-"+theme)
			}
		}
		b.theme("light")
		b.width(1280)
	})
}
