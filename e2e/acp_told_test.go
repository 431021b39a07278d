package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// blocks are the texts that it was sent, one for each block.
func (f *fake) blocks() []string {
	f.w.t.Helper()
	var out []string
	for _, e := range f.log() {
		if e.Line.Method == "session/prompt" {
			for _, b := range e.Line.Params.Prompt {
				out = append(out, b.Text)
			}
		}
	}
	return out
}

// told are the texts that an agent was told, by the journal alone: with each message
// the server's notes before it, and what people asked for and it hadn't been told.
func (j journal) told() []string {
	type prompt struct {
		seq  int64
		text string
	}
	var out, notes []string
	var prompts []prompt
	var upTo, before int64
	texts := map[string]string{}
	for i := range j {
		switch e := &j[i]; e.Kind {
		case "prompt.admitted":
			texts[e.str("prompt_id")] = e.str("text")
		case "prompt.promoted":
			prompts = append(prompts, prompt{e.Seq, texts[e.str("prompt_id")]})
		case "message.completed":
			if e.str("told") != "" {
				notes = append(notes, e.str("text"))
			}
		case "attempt.prepared":
			out, notes = append(out, notes...), nil
			var sent struct {
				Cutoff int64 `json:"cutoff_seq"`
			}
			_ = json.Unmarshal(e.Data, &sent) // 0: then less is told than was
			for _, p := range prompts {
				if p.seq > upTo && p.seq <= sent.Cutoff {
					out = append(out, p.text)
				}
			}
			before, upTo = upTo, sent.Cutoff
		case "attempt.failed":
			upTo = before
		case "attempt.resolved":
			if e.str("outcome") == "retry" {
				upTo = before
			}
		}
	}
	return append(out, notes...) // none is left over
}

// wantTold fails unless an agent was told what the journal says, word for word and in
// order, and nothing else.
func (f *fake) wantTold(j journal) {
	f.w.t.Helper()
	if got, want := f.blocks(), j.told(); !slices.Equal(got, want) {
		f.w.t.Errorf("the agent %s was told\n%q\nand by the journal\n%q", f.name, got, want)
	}
}

// Whatever an agent is told is in the journal as text: what people asked for, what they
// said of what they rejected, what they found out, that the turn goes on, and what was
// before. A credential that was stored after somebody had written it down is in neither. What
// reached nobody is told again.
//
// proves PER-2 CAL-6 ATT-1 OWN-3
func TestACP_TheJournalHasAllThatItIsTold(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{"capabilities": `+loads+`, "prompts": [
			{"match": "Do one", "steps": [
				{"permission": {"toolCall": {"toolCallId": "p", "title": "make \"all\"", "kind": "execute", "rawInput": {"command": "make all"}}}},
				{"touch": "WORK/rejected"}, {"wait_file": "WORK/stored"}]},
			{"match": "I rejected", "times": 1, "steps": [{"error": {"code": -32000, "message": "Authentication required"}}]},
			{"match": "I rejected", "steps": [{"run": "echo command >> effects; echo $$ > pid; touch at-command; read -r _ < gate"}]},
			{"match": "was unknown", "times": 1, "steps": [{"error": {"code": -32000, "message": "Authentication required"}}]},
			{"steps": [{"say": "done"}]}]}`)
		s := w.serve(flags(quick...), agents(f))
		w.gate("gate")
		b := w.signedIn(s)
		id := s.mission("Do one", f.by, asking)
		s.untilState(id, "waiting")
		s.decide(s.pending(id)[0].ID, "reject", "not with "+secretKey+",\nnot *today*").want(t, http.StatusOK)
		w.untilFile("rejected")
		b.store("MODEL_KEY", "", secretKey)
		w.touch("stored")
		s.untilQuiet(id, "blocked") // it needs a sign-in: what it was told reached nobody
		s.resume(id).want(t, http.StatusAccepted)
		w.untilFile("at-command")
		s.prompt(id, "Do two", "queue")
		f.kill()
		s.untilQuiet(id, "uncertain")
		s.resolve(s.calls(id)[1].ID, "did_not_happen", "continue").want(t, http.StatusOK)
		s.resolveAttempt(s.events(id).attempt(), "abandon", "continue").want(t, http.StatusOK)
		s.untilQuiet(id, "blocked")
		s.resume(id).want(t, http.StatusAccepted)
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		f.kill()
		s.waitShimsGone()
		f.forgets()
		f.follows(`{"capabilities": ` + loads + `, "prompts": [{"steps": [{"say": "done"}]}]}`)
		s.prompt(id, "Do three", "queue")
		s.untilQuiet(id, "failed")
		s.anew(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")

		j := s.events(id)
		f.wantTold(j)
		var kinds []string
		for _, m := range j.of("message.completed") {
			if told := m.str("told"); told != "" {
				kinds = append(kinds, told)
			}
			w.wantHidden("a message", m.str("text"), secretKey)
		}
		if got := fmt.Sprint(kinds); got != "[rejection rejection outcome go_on outcome go_on summary]" {
			t.Errorf("the server told it %s", got)
		}
		all := f.blocks()
		rejected, unknown, goOn := `I rejected "make \"all\"": not with [hidden],`+"\nnot *today*\n", `was unknown; a person says: it did not happen. looked at the file`, "Go on with what was asked."
		want := []string{"Do one", rejected, rejected, unknown, goOn, unknown, goOn, "Do two", summaryHead, "Do three"}
		if !slices.EqualFunc(all, want, strings.Contains) {
			t.Errorf("the agent was told %q, want %q", all, want)
		}
	})
}
