package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"holdfast/runner/acp/wire"
)

func TestSteps(t *testing.T) {
	t.Parallel()
	const asks = "request 0 session/request_permission"
	branches := `"then_on":{"allow":[{"say":"yes"}],"reject":[{"say":"no"}],"cancelled":[{"say":"never"}]}`
	for name, tt := range map[string]struct {
		steps  string
		choose string
		told   []string
	}{
		"none":   {``, "", []string{"answer end_turn"}},
		"update": {`{"update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"<{{prompt}}> {{turn}}"}}}`, "", []string{"thinks <\"p\"> 1", "answer end_turn"}},
		"repeat": {
			`{"repeat":2,"steps":[{"say":"{{n}}"},{"repeat":2,"steps":[{"say":"inner {{n}}"}]}]},{"repeat":0,"steps":[{"say":"x"}]}`, "",
			[]string{"says 1", "says inner 1", "says inner 2", "says 2", "says inner 1", "says inner 2", "answer end_turn"},
		},
		"spell":                  {`{"spell":"aé"}`, "", []string{"says a", "says é", "answer end_turn"}},
		"permission, allowed":    {`{"permission":{},` + branches + `},{"say":"on"}`, "once", []string{asks, "says yes", "says on", "answer end_turn"}},
		"permission, always":     {`{"permission":{},` + branches + `}`, "always", []string{asks, "says yes", "answer end_turn"}},
		"permission, rejected":   {`{"permission":{},` + branches + `},{"say":"on"}`, "reject", []string{asks, "says no", "says on", "answer end_turn"}},
		"permission, cancelled":  {`{"permission":{},` + branches + `}`, "", []string{asks, "says never", "answer end_turn"}},
		"permission, no branch":  {`{"permission":{}},{"say":"on"}`, "reject", []string{asks, "says on", "answer end_turn"}},
		"permission, own option": {`{"permission":{"options":[{"optionId":"x","name":"X","kind":"allow_always"}]},` + branches + `}`, "x", []string{asks, "says yes", "answer end_turn"}},
		"permission, meanwhile":  {`{"permission":{},"meanwhile":[{"say":"waiting"}],` + branches + `}`, "once", []string{asks, "says waiting", "says yes", "answer end_turn"}},
		"run": {
			`{"run":"printf 'a\\nb'"}`, "",
			[]string{"tool_call call_1_1 pending", "tool_call_update call_1_1 in_progress", "tool_call_update call_1_1 in_progress a\nb", "tool_call_update call_1_1 completed a\nb", "answer end_turn"},
		},
		"run, failing, of a known call": {
			`{"run":"echo no >&2; exit 3","tool":"t{{turn}}"}`, "",
			[]string{"tool_call_update t1 in_progress", "tool_call_update t1 in_progress no\n", "tool_call_update t1 failed no\n", "answer end_turn"},
		},
		"sleep":           {`{"sleep_ms":1},{"say":"a"}`, "", []string{"says a", "answer end_turn"}},
		"files":           {`{"touch":"DIR/x"},{"wait_file":"DIR/x"},{"say":"a"}`, "", []string{"says a", "answer end_turn"}},
		"rubbish":         {`{"rubbish":"npm warn {"}`, "", []string{"rubbish npm warn {", "answer end_turn"}},
		"burst":           {`{"burst":3}`, "", []string{"says burst 1\n", "says burst 2\n", "says burst 3\n", "answer end_turn"}},
		"an id again":     {`{"permission":{}},{"dup_id":true},{"permission":{}},{"permission":{}}`, "once", []string{asks, asks, "request 1 session/request_permission", "answer end_turn"}},
		"an open id":      {`{"permission":{},"meanwhile":[{"dup_id":true},{"unknown_request":"x"}],"then_on":{"allow":[{"say":"yes"}]}},{"say":"not reached"}`, "once", []string{asks, "request 0 x"}},
		"unknown update":  {`{"unknown_update":true}`, "", []string{"unknown fakeagent_novelty", "answer end_turn"}},
		"unknown request": {`{"unknown_request":"fs/write_text_file"},{"say":"on"}`, "", []string{"request 0 fs/write_text_file", "says on", "answer end_turn"}},
		"stop":            {`{"stop":"max_tokens"}`, "", []string{"answer max_tokens"}},
		"error":           {`{"error":{"code":-32603,"message":"no <model>","data":{"a":1}}}`, "", []string{"error -32603 no <model>"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWorld(t, turnOf(tt.steps)).start()
			a.choose = tt.choose
			id := a.prompt(a.open(), `"p"`)
			if name == "an open id" { // the later request has taken the answers of both
				for _, want := range tt.told {
					a.expect(want)
				}
				return
			}
			told, _ := a.until(id)
			wantTold(t, told, tt.told...)
		})
	}
}

func TestSteps_AfterTheAnswer(t *testing.T) {
	t.Parallel()
	a := newWorld(t, turnOf(`{"stop":"end_turn","usage":{"inputTokens":5}},{"say":"late"},{"stop":"refusal"},{"error":{"code":1,"message":"no"}}`)).start()
	session := a.open()
	_, answer := a.until(a.prompt(session, ""))
	if got, err := wire.Decode[wire.PromptResult](answer.Result); err != nil || got.Usage == nil || *got.Usage.InputTokens != 5 {
		t.Errorf("got %s, %v", answer.Result, err)
	}
	a.expect("says late")
	told, _ := a.until(a.send(wire.MethodAuthenticate, nil))
	wantTold(t, told, "answer")
}

// What reorder held back follows, the last first.
func TestSteps_Reorder(t *testing.T) {
	t.Parallel()
	a := newWorld(t, turnOf(`{"reorder":[{"say":"1"},{"reorder":[{"say":"2"},{"say":"3"}]},{"stop":"refusal"}]},{"say":"after"}`)).start()
	a.prompt(a.open(), "")
	for _, want := range []string{"answer refusal", "says 2", "says 3", "says 1", "says after"} {
		a.expect(want)
	}
}

func TestSteps_Big(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	a := newWorld(t, turnOf(`{"big":3145728}`)).start()
	a.prompt(a.open(), "")
	r, _ := a.next()
	if _, u := wire.ParseUpdate(r.m.Params); len(r.raw) != size || len(u.(wire.Chunk).Content.(wire.TextBlock).Text) < size-500 {
		t.Errorf("a line of %d bytes, want %d", len(r.raw), size)
	}
	a.expect("answer end_turn")
}

func TestSteps_Ends(t *testing.T) {
	t.Parallel()
	for steps, ended := range map[string]func(syscall.WaitStatus) bool{
		`{"say":"a"},{"stderr":"some words"},{"crash":true}`: func(s syscall.WaitStatus) bool { return s.Signal() == syscall.SIGKILL },
		`{"say":"a"},{"stderr":"some words"},{"exit":7}`:     func(s syscall.WaitStatus) bool { return s.Exited() && s.ExitStatus() == 7 },
	} {
		a := newWorld(t, turnOf(steps)).start()
		told, _ := a.until(a.prompt(a.open(), ""))
		wantTold(t, told, "says a", "end")
		if status := a.wait(); !ended(status) || a.stderr.String() != "some words\n" {
			t.Errorf("%s: ended by %v, said %q", steps, status, a.stderr)
		}
	}
}

func TestScript_Refused(t *testing.T) {
	t.Parallel()
	for script, says := range map[string]string{
		`{`:                                   "unexpected EOF",
		`{"promts":[]}`:                       `unknown field "promts"`,
		turnOf(`{}`):                          "no word that is known",
		turnOf(`{"shout":"x"}`):               "no word that is known",
		turnOf(`{"say":"x","run":"y"}`):       "two words",
		turnOf(`{"say":5}`):                   "step say",
		turnOf(`{"say":"x","steps":[]}`):      "steps doesn't go with it",
		turnOf(`{"repeat":1,"steps":[5]}`):    "step repeat: steps",
		turnOf(`{"reorder":[{"shout":"x"}]}`): "step reorder",
		turnOf(`{"permission":{},"then_on":{"maybe":[]}}`): `"maybe" is none of`,
		`{"on_cancel":"maybe"}`:                            "is no mode",
		`{"on_cancel":{"after":"x"}}`:                      `unknown field "after"`,
		`{"on_eof":"maybe"}`:                               "on_eof",
		`{"capabilities":5}`:                               "not an object",
	} {
		a := newWorld(t, script).start()
		if status := a.wait(); !status.Exited() || status.ExitStatus() != 2 || !strings.Contains(a.stderr.String(), says) {
			t.Errorf("%s: ended by %v, said %q, want %q", script, status, a.stderr, says)
		}
	}
}

// Each word is told in doc.go, and stands in a test.
func TestKinds_AreDocumentedAndTested(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	doc, tests := read("doc.go"), read("agent_test.go")+read("steps_test.go")
	for word, kind := range kinds {
		for _, w := range append(kind.with, word) {
			if !strings.Contains(doc, "\t"+w+": ") && !strings.Contains(doc, "  "+w+": ") {
				t.Errorf("doc.go doesn't tell of %s", w)
			}
			if !strings.Contains(tests, `"`+w+`":`) {
				t.Errorf("no test has %s", w)
			}
		}
	}
}
