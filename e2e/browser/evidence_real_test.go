//go:build evidence

package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/e2e/agents"
	"holdfast/e2e/model"
)

const (
	realMission = "Round the totals in one place, and see that the tests pass."
	realReason  = "Put it into the test that is there, report_test.go."
	realNext    = "Good. What is left?"
)

// realScripts are what the model says and does for these.
var realScripts = map[string]string{
	realMission: strings.Join([]string{
		`SAY(The totals are rounded in **three** places, each in its own way:\n\n- ` + "`report.go`" + ` cuts off,\n- ` + "`invoice.go`" + ` rounds half up,)`,
		`WAIT(text)`,
		`SAY(\n- the template rounds what was rounded before.\n\nI'll look at what the tests say first.)`,
		`RUN(printf 'ok   example.org/billing/report   0.41s\nok   example.org/billing/invoice  0.22s\n')`,
		`SAY(They pass. I'll add one for the half cents.)`,
		`EDIT(WORK/round_test.go, package report\n\nimport "testing"\n\nfunc TestRound_HalfCents(t *testing.T) {\n\tfor in, want := range map[float64]string{0.125: "0.13", 2.675: "2.68", 1e6 + 0.005: "1000000.01"} {\n\t\tif got := Round(in); got != want {\n\t\t\tt.Errorf("Round(%v) = %s, want %s", in, got, want)\n\t\t}\n\t}\n}\n)`,
		`SAY(I did not write it.)`,
	}, "\n"),
	realReason: `SAY(Then I leave ` + "`round_test.go`" + ` out, and put the cases into ` + "`report_test.go`" + `.)`,
	realNext:   `SAY(The template still rounds by itself. That is one line in ` + "`invoice.html`" + `; I would take it out last, once the totals come rounded.)`,
}

// TestEvidence_RealAgents shows the page while agents from npm work.
func TestEvidence_RealAgents(t *testing.T) {
	for _, a := range []agents.Agent{agents.OpenCode, agents.Claude} {
		t.Run(a.Name, func(t *testing.T) { realEvidence(t, a) })
	}
}

func realEvidence(t *testing.T, a agents.Agent) {
	t.Helper()
	w := newWorld(t, "sqlite")
	m := model.New()
	t.Cleanup(m.Close)
	for prompt, script := range realScripts {
		m.Teach(prompt, strings.ReplaceAll(script, "WORK", w.work))
	}
	s := w.serve(w.withReal(a, m)...)
	api := s.api()
	id := api.mission(realMission, asking, titled("Round in one place"), func(body map[string]any) { body["agent"] = a.Name })
	l := &live{job: &job{b: w.tab(s.base), a: api, id: id}, t: t, w: w, s: s}
	b := l.b
	b.signIn()
	b.visit(l.path())
	<-m.Reached("text")
	b.within(recovery, "it writes", says("#journal-list", "rounds half up"))
	look := func(stage string) {
		if f, ok := realFrames[a.Name+"-"+stage]; ok {
			f.shoot(b, "real-"+a.Name+"-"+stage)
		}
	}
	look("writes")
	m.GoOn("text")
	l.reach("waiting")
	look("asks")
	for len(api.pending(id)) > 0 && !strings.Contains(b.text("#needs-list"), "round_test.go") {
		l.allowStep()
		l.reach("waiting")
	}
	request := "#" + api.pending(id)[0].ID
	b.within(recovery, "it shows the change", has(request+" "+sel("diff")))
	b.press(request + ` [data-testid="decision-note"] summary`)
	b.fill(request+` textarea[name="message"]`, realReason)
	b.press(request + ` button[value="reject"]`)
	l.reach("ready")
	look("denied")
	b.fill("#text", realNext)
	b.press(sel("composer") + " button[value=queue]")
	b.within(recovery, "the second turn is done", says("#journal-list", "one line in"))
	l.reach("ready")
	look("done")
}

// withReal are flags of a server that has an agent from npm.
func (w *world) withReal(a agents.Agent, m *model.Model) []string {
	w.t.Helper()
	folder := filepath.Join("..", "agents")
	if err := a.Check(w.t.Context(), folder); err != nil {
		w.t.Fatal(err)
	}
	bin, err := agents.Bin(folder)
	if err != nil {
		w.t.Fatal(err)
	}
	env, err := agents.Settings(w.dir, m.URL(), a.API[0])
	if err != nil {
		w.t.Fatal(err)
	}
	script := fmt.Sprintf("exec env PATH='%s':\"$PATH\"", bin)
	for _, e := range env {
		script += " '" + e + "'"
	}
	script += " " + a.Program
	if a.Name == agents.OpenCode.Name {
		script += " acp"
	}
	path := filepath.Join(w.dir, a.Name+".sh")
	if err := os.WriteFile(path, []byte(script+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return []string{"--agent", a.Name + "=sh " + path}
}

// frame is a picture: how wide, in which theme, and where the page is scrolled to.
type frame struct {
	width            int64
	theme, at, block string
}

// realFrames are the pictures of docs/evidence.md, by agent and stage.
var realFrames = map[string]frame{
	"opencode-writes": {1280, "light", sel("draft"), "center"},
	"opencode-asks":   {390, "dark", "#needs-list .card", "start"},
	"claude-denied":   {1280, "dark", `[data-kind="permission.replied"]`, "center"},
	"claude-done":     {390, "light", "#journal-list > li:last-child", "end"},
}

func (f frame) shoot(b *tab, name string) {
	b.theme(f.theme)
	b.width(f.width)
	eval[bool](b, "([...document.querySelectorAll("+quote(f.at)+")].at(-1).scrollIntoView({block: "+quote(f.block)+"}), true)")
	shoot(b, name)
	b.theme("light")
	b.width(1280)
}
