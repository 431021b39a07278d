package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// offering are the members of an agent's session that can be set in all three ways
// of ACP: the mode is a config option, too, and isn't told twice.
const offering = `"session": {
	"configOptions": [
		{"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "build", "options": [{"value": "build", "name": "Build"}, {"value": "plan", "name": "Plan"}]},
		{"id": "web", "name": "Web", "type": "boolean", "currentValue": false}],
	"modes": {"currentModeId": "build", "availableModes": [{"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}]},
	"models": {"currentModelId": "small", "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}]}}`

// setting is one of a session as a program reads it.
type setting struct {
	ID      string  `json:"id"`
	Current *string `json:"current"`
	Wanted  *string `json:"wanted"`
}

func settings(pairs ...string) []map[string]string {
	var out []map[string]string
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, map[string]string{"id": pairs[i], "value": pairs[i+1]})
	}
	return out
}

// set makes a session whose agent is to be set so.
func set(pairs ...string) func(map[string]any) {
	return func(body map[string]any) { body["settings"] = settings(pairs...) }
}

// choose changes what a session's agent is to be set to.
func (c *client) choose(id string, pairs ...string) answer {
	c.w.t.Helper()
	return c.post("/api/v1/sessions/"+id+"/settings", map[string]any{"settings": settings(pairs...)})
}

// isSet gives the settings of a session: what they are, then what is wanted.
func (c *client) isSet(id string) string {
	c.w.t.Helper()
	one := decode[struct {
		Settings []setting `json:"settings"`
	}](c.w.t, c.get("/api/v1/sessions/"+id).want(c.w.t, http.StatusOK))
	var out []string
	for _, s := range one.Settings {
		text := s.ID + "="
		if s.Current != nil {
			text += *s.Current
		}
		if s.Wanted != nil {
			text += ">" + *s.Wanted
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// told are the methods that set something, or prompt, in the order in which the
// agent was told.
func (f *fake) told() string {
	f.w.t.Helper()
	var out []string
	for _, e := range f.log() {
		if e.What == "received" && (strings.HasPrefix(e.Line.Method, "session/set_") || e.Line.Method == "session/prompt") {
			out = append(out, strings.TrimPrefix(e.Line.Method, "session/"))
		}
	}
	return strings.Join(out, " ")
}

// What an agent offers is known as soon as it has opened a session; what a person
// wants of it is set before it is prompted, and stays so in its next process.
// proves ATT-1 REC-12
func TestACP_IsSetBeforeItIsPrompted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{`+offering+`}`)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("one", f.by, set("mode", "plan", "model", "large", "web", "true"))
		s.untilQuiet(id, "ready")
		if got, want := f.told(), "set_model set_config_option set_config_option prompt"; got != want {
			t.Errorf("the agent was told %s, want %s", got, want)
		}
		if got, want := s.isSet(id), "mode=plan>plan web=true>true model=large>large"; got != want {
			t.Errorf("it is set %s, want %s", got, want)
		}
		// Between two turns another model, and nothing else is told.
		s.choose(id, "model", "small").want(t, http.StatusAccepted)
		s.prompt(id, "two", "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		if got, want := f.told(), "set_model set_config_option set_config_option prompt set_model prompt"; got != want {
			t.Errorf("the agent was told %s, want %s", got, want)
		}
		// A new process comes up as it likes, and is set again.
		f.kill()
		s.waitShimsGone()
		s.prompt(id, "three", "queue")
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		if got, want := f.told(), "set_model set_config_option set_config_option prompt set_model prompt set_config_option set_config_option prompt"; got != want {
			t.Errorf("the agent was told %s, want %s", got, want)
		}
		if got, want := s.isSet(id), "mode=plan>plan web=true>true model=small>small"; got != want {
			t.Errorf("it is set %s, want %s", got, want)
		}
		s.post("/api/v1/sessions/"+id+"/archive", nil).want(t, http.StatusAccepted)
		s.choose(id, "model", "large").want(t, http.StatusConflict)
	})
}

// offeredAgent is an agent as a program reads it.
type offeredAgent struct {
	Name    string            `json:"name"`
	Options []json.RawMessage `json:"options"`
}

// The form for the next session knows what the agent offered.
// proves OWN-1
func TestACP_OffersAreKept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{`+offering+`}`)
		s := w.serve(flags(quick...), agents(f))
		body := w.newSession("one")
		f.by(body)
		body["settings"] = settings("model", "any") // nothing is known yet, so it is taken
		id := decode[session](t, s.post("/api/v1/sessions", body, "Idempotency-Key", newKey()).want(t, http.StatusCreated)).ID
		s.untilQuiet(id, "failed")
		all := decode[items[offeredAgent]](t, s.get("/api/v1/agents").want(t, http.StatusOK)).Items
		if !slices.ContainsFunc(all, func(a offeredAgent) bool { return a.Name == "fake" && len(a.Options) == 3 }) {
			t.Errorf("the agents offer %+v", all)
		}
		s.post("/api/v1/sessions", body, "Idempotency-Key", newKey()).want(t, http.StatusUnprocessableEntity)
	})
}

// What an agent offered when it was looked at is offered for a new session, before any
// session of it has begun.
// proves OWN-1
func TestACP_ALookKeepsItsOffers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{`+offering+`}`)
		s := w.serve(flags(quick...), agents(f))
		b := w.signedIn(s)
		b.visit("/settings/agents/fake")
		b.submit("/settings/agents/fake/probe", nil)
		s.untilOffered("fake", 3)
		f.want(map[string]int{"session/prompt": 0})
		b.visit("/sessions/new")
		if b.doc.Find(`select[name^="set:fake:"]`).Length() != 3 {
			t.Errorf("a new session can't be set: %s", tail(b.text, 2000))
		}
	})
}

// untilOffered waits until an agent is known to offer so many settings.
func (s *server) untilOffered(agent string, n int) {
	s.w.t.Helper()
	eventually(s.w.t, agent+" has told what it offers", func() bool {
		all := decode[items[offeredAgent]](s.w.t, s.get("/api/v1/agents").want(s.w.t, http.StatusOK)).Items
		return slices.ContainsFunc(all, func(a offeredAgent) bool { return a.Name == agent && len(a.Options) == n })
	})
}

// An agent that doesn't take what is wanted of it isn't prompted; nothing is lost,
// and a person chooses something else.
// proves CAL-7 PRO-6
func TestACP_RefusesASetting(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{`+offering+`, "answers": {"session/set_model": {"error": {"code": -32602, "message": "no credit for large"}}}}`)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("one", f.by, set("model", "large"))
		s.untilQuiet(id, "failed")
		reason := s.events(id).of("turn.ended")[0].str("reason")
		if !strings.Contains(reason, "no credit for large") || !strings.Contains(reason, "Nothing was sent") {
			t.Errorf("the turn failed with %q", reason)
		}
		f.want(map[string]int{"session/prompt": 0, "session/set_model": 1})
		s.choose(id, "model", "medium").want(t, http.StatusUnprocessableEntity)
		s.choose(id, "model", "").want(t, http.StatusAccepted) // as the agent has it
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		f.wantPrompts("one")
		f.want(map[string]int{"initialize": 1, "session/set_model": 1})
		wantCounts(t, s.events(id), map[string]int{"agent.started": 1, "agent.ended": 0, "attempt.dispatched": 1, "agent.setting": 2})
	})
}

// What the agent changes by itself is shown, and isn't fought: only what a person
// chooses afterwards is set again.
// proves PRO-3
func TestACP_ChangesItsModeByItself(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{`+offering+`, "prompts": [
			{"match": "leave", "steps": [{"update": {"sessionUpdate": "current_mode_update", "currentModeId": "build"}}, {"say": "left"}]}, {}]}`)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("leave plan mode", f.by, set("mode", "plan"))
		s.untilQuiet(id, "ready")
		s.prompt(id, "two", "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		if got, want := f.told(), "set_config_option prompt prompt"; got != want {
			t.Errorf("the agent was told %s, want %s", got, want)
		}
		if got, want := s.isSet(id), "mode=build web=false model=small"; got != want {
			t.Errorf("it is set %s, want %s", got, want)
		}
		s.choose(id, "mode", "plan").want(t, http.StatusAccepted)
		s.prompt(id, "three", "queue")
		s.untilKind(id, "turn.ended", 3)
		s.untilQuiet(id, "ready")
		if got, want := f.told(), "set_config_option prompt prompt set_config_option prompt"; got != want {
			t.Errorf("the agent was told %s, want %s", got, want)
		}
	})
}

// The server, then the agent, is killed while a setting has no answer. What was told
// is not told again to the same process, and nothing of the turn is lost.
// proves REC-3 ATT-1
func TestACP_IsKilledWhileItIsSet(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{`+offering+`, "answers": {"session/set_model": {"after_file": "WORK/set"}}}`)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("one", f.by, set("model", "large", "mode", "plan"))
		eventually(t, "the agent is told its model", func() bool { return f.received()["session/set_model"] == 1 })
		for range 2 {
			s.kill9()
			s.restart()
		}
		s.kill9()
		w.touch("set") // it answers while nobody is there
		s.restart()
		s.untilQuiet(id, "ready")
		if got, want := f.told(), "set_model set_config_option prompt"; got != want {
			t.Errorf("the agent was told %s, want %s", got, want)
		}
		wantCounts(t, s.events(id), map[string]int{"agent.started": 1, "agent.opened": 1, "attempt.dispatched": 1, "turn.started": 1, "session.blocked": 0})

		g := w.fake("dies", `{`+offering+`, "answers": {"session/set_model": {"crash": true}}}`)
		s.sigterm()
		s.restart(agents(g))
		id = s.mission("two", g.by, set("model", "large"))
		s.untilQuiet(id, "failed")
		if reason := s.events(id).of("turn.ended")[0].str("reason"); !strings.Contains(reason, "Nothing was sent") {
			t.Errorf("the turn failed with %q", reason)
		}
		wantCounts(t, s.events(id), map[string]int{"agent.ended": 1, "attempt.prepared": 0, "attempt.unknown": 0})
		g.follows(`{` + offering + `}`)
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		g.wantPrompts("two")
		if got, want := s.isSet(id), "mode=build web=false model=large>large"; got != want {
			t.Errorf("it is set %s, want %s", got, want)
		}
	})
}

// How full the context is, what it costs, which commands there are and what the
// agent remarks is in the journal, once a commit and not once a word.
// proves JRN-5 JRN-1
func TestACP_TellsOfItself(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		usage := func(used, cost string) string {
			return `{"update": {"sessionUpdate": "usage_update", "used": ` + used + `, "size": 200000, "cost": {"amount": ` + cost + `, "currency": "USD"}}}`
		}
		f := w.fake("fake", `{"opened": [{"update": {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "init", "description": "d", "input": {"hint": "h"}}]}}],
			"prompts": [
			{"match": "one", "steps": [
				{"update": {"sessionUpdate": "notice", "severity": "warning", "title": "Almost full", "description": "Soon."}},
				{"update": {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress"}},
				{"update": {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed"}},
				{"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}}, {"say": "said"}, `+usage("1000", "0.25")+`, `+usage("34000", "0.5")+`]},
			{"match": "two", "steps": [`+usage("500", "0.1")+`]}]}`)
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("one", f.by)
		s.untilQuiet(id, "ready")
		f.kill() // its next process counts anew
		s.waitShimsGone()
		s.prompt(id, "two", "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		j := s.events(id)
		var words []string
		for _, m := range j.said() {
			words = append(words, m.part+" "+m.whole)
		}
		want := "note Warning: Almost full\n\nSoon.|note The agent shortens what it remembers of this conversation.|note The agent has shortened what it remembers of this conversation.|reasoning hm|text said"
		if got := strings.Join(words, "|"); got != want {
			t.Errorf("it said %q, want %q", got, want)
		}
		one := decode[struct {
			Usage struct {
				Cost float64 `json:"cost_usd"`
			} `json:"usage"`
			Context struct{ Used, Size int64 } `json:"context"`
		}](t, s.get("/api/v1/sessions/"+id).want(t, http.StatusOK))
		if one.Usage.Cost != 0.6 || one.Context.Used != 500 || one.Context.Size != 200_000 {
			t.Errorf("it used %+v", one)
		}
		wantCounts(t, j, map[string]int{"agent.commands": 1, "agent.event": 0})
		if n := len(j.of("agent.usage")); n < 2 || n > 3 {
			t.Errorf("%d events tell of its usage", n)
		}
	})
}

// What an agent changes while nobody reads it doesn't take back what a person chooses
// afterwards; nor does what it changes in the turn in which they chose.
// proves PRO-3
func TestACP_IsPromptedAsAPersonChose(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const change = `{"update": {"sessionUpdate": "config_option_update", "configOptions": [
			{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "medium", "options": [{"value": "small", "name": "S"}, {"value": "medium", "name": "M"}, {"value": "large", "name": "L"}]}]}}`
		session := `"session": {"configOptions": [
			{"id": "model", "name": "Model", "category": "model", "type": "select", "currentValue": "small", "options": [{"value": "small", "name": "S"}, {"value": "medium", "name": "M"}, {"value": "large", "name": "L"}]}]}`
		idle := w.fake("idle", `{`+session+`, "prompts": [{"match": "one", "steps": [{"stop": "end_turn"}, {"wait_file": "WORK/go"}, `+change+`, {"touch": "WORK/changed"}]}, {}]}`)
		again := w.fake("again", `{`+session+`, "prompts": [{"match": "one", "steps": [{"stop": "end_turn"}, {"wait_file": "WORK/go"}, `+change+`, {"touch": "WORK/changed-again"}]}, {}]}`)
		busy := w.fake("busy", `{`+session+`, "prompts": [{"match": "one", "steps": [{"say": "a"}, {"wait_file": "WORK/chosen"}, `+change+`]}, {}]}`)
		s := w.serve(flags(quick...), agents(idle, again, busy))
		ids := []string{s.mission("one", idle.by), s.mission("one", again.by, set("model", "large")), s.mission("one", busy.by)}
		s.untilQuiet(ids[0], "ready")
		s.untilQuiet(ids[1], "ready")
		w.touch("go")
		w.untilFile("changed")
		w.untilFile("changed-again")
		s.choose(ids[0], "model", "large").want(t, http.StatusAccepted)
		s.untilKind(ids[2], "message.delta", 1)
		s.choose(ids[2], "model", "large").want(t, http.StatusAccepted)
		w.touch("chosen")
		s.untilQuiet(ids[2], "ready")
		for i, f := range []*fake{idle, again, busy} {
			s.prompt(ids[i], "two", "queue")
			s.untilKind(ids[i], "turn.ended", 2)
			s.untilQuiet(ids[i], "ready")
			want := "prompt set_config_option prompt"
			if f == again {
				want = "set_config_option " + want
			}
			if got := f.told(); got != want {
				t.Errorf("%s was told %s, want %s", f.name, got, want)
			}
			if got := s.isSet(ids[i]); got != "model=large>large" {
				t.Errorf("%s is set %s", f.name, got)
			}
		}
	})
}
