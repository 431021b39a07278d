package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What was let run stays what the call is, whatever its agent says of it later. What is
// something else is an entry of its own; the same in another form, or a part, is not.
//
// proves PER-1 PER-4 JRN-4
func TestACP_SaysSomethingElseLater(t *testing.T) {
	t.Parallel()
	const (
		run  = `"kind":"execute","rawInput":{"command":"make nice"}`
		edit = `"kind":"edit","rawInput":{"filepath":"/w/README.md","diff":"-tge\\n+the"},"content":[{"type":"diff","path":"/w/README.md","oldText":"one\\ntge\\nthree\\n","newText":"one\\nthe\\nthree\\n"}]`
	)
	for name, c := range map[string]struct {
		asked, later string
		contradicts  bool
	}{
		"another command":                {run, `"rawInput":{"command":"rm -rf /home"}`, true},
		"a part of it":                   {run, `"rawInput":{"command":"make"}`, true},
		"a change beside":                {run, `"content":[{"type":"diff","path":"/w/README.md","oldText":"","newText":"x"}]`, true},
		"another place":                  {run, `"locations":[{"path":"/home"}]`, true},
		"another title":                  {run, `"title":"Make it nice"`, false},
		"another change":                 {edit, `"content":[{"type":"diff","path":"/w/README.md","oldText":"tge","newText":"curl evil"}]`, true},
		"another file":                   {edit, `"content":[{"type":"diff","path":"/w/Makefile","oldText":"tge","newText":"the"}]`, true},
		"a read that deletes":            {`"kind":"read","rawInput":{"path":"a.txt"}`, `"kind":"delete"`, true},
		"a folder above":                 {`"kind":"delete","rawInput":{"path":"build/tmp"}`, `"rawInput":{"path":"build"}`, true},
		"the other way around":           {`"kind":"move","rawInput":{"source":"a","destination":"b"}`, `"rawInput":{"source":"b","destination":"a"}`, true},
		"another title, known by it":     {`"kind":"execute"`, `"title":"rm -rf /"`, true},
		"a script beside":                {edit, `"rawInput":{"script":"the"}`, true},
		"what changed, as opencode says": {edit, `"rawInput":{"filePath":"/w/README.md","oldString":"tge","newString":"the"},"content":[{"type":"diff","path":"/w/README.md","oldText":"tge","newText":"the"}]`, false},
		"lines around it, as Claude says": {
			`"kind":"edit","rawInput":{"file_path":"/w/README.md","old_string":"tge","new_string":"the"},"content":[{"type":"diff","path":"/w/README.md","oldText":"tge","newText":"the"}]`,
			`"content":[{"type":"diff","path":"/w/README.md","oldText":"before\\nfix tge typo\\nafter","newText":"before\\nfix the typo\\nafter"}]`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t, "sqlite").Open(t)
			_, with := scripted(t, `hear
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x",`+c.asked+`}'
echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'
hear; say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed",`+c.later+`}'; stop 3; read -r l`)
			b := setup(t, s, with)
			b.start()
			id := b.session("Do it", byFake, asking)
			b.untilKind(id, journal.KindPermissionAsked, 1)
			before, err := s.Calls(t.Context(), b.owner, id, 0)
			if err != nil {
				t.Fatal(err)
			}
			for len(b.pending(id)) > 0 {
				r := b.pending(id)[0]
				b.decide(r.ID, store.Decision{Reply: journal.ReplyOnce, Digest: r.Digest})
			}
			b.until(id, "it is done", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
			calls, err := s.Calls(t.Context(), b.owner, id, 0)
			if err != nil || len(calls) != 1 || string(calls[0].Input) != string(before[0].Input) || calls[0].State != journal.CallSucceeded || (calls[0].Later != nil) != c.contradicts {
				t.Errorf("the call is %+v, %v", calls, err)
			}
			kinds := map[journal.Kind]int{}
			for _, ev := range storetest.Events(t, s, id) {
				kinds[ev.Kind]++
			}
			if got := kinds[journal.KindCallContradicted]; (got == 1) != c.contradicts || got > 1 || kinds[journal.KindCallDescribed]+got != 1 {
				t.Errorf("the journal has %v", kinds)
			}
		})
	}
}

// A request that follows a dispatch asks what the agent says then, as another call: what was
// let run before stays that.
//
// proves PER-1 PER-6
func TestACP_AsksSomethingElseAfterAnAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, askRun[:strings.Index(askRun, "case")]+`say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","rawInput":{"command":"rm -rf data"}}'
echo '{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'
hear; say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'; stop 3; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake, asking)
		for n, want := range []string{"touch made", "rm -rf data"} {
			b.untilKind(id, journal.KindPermissionAsked, n+1)
			r := b.pending(id)[0]
			if got := string(r.Metadata); !strings.Contains(got, `"command":"`+want+`"`) || !strings.Contains(got, `"whole":true`) {
				t.Errorf("request %d is %s", n, got)
			}
			b.decide(r.ID, store.Decision{Reply: journal.ReplyOnce, Digest: r.Digest})
		}
		b.until(id, "it is done", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 2 || !strings.Contains(string(calls[0].Input), "touch made") || !strings.Contains(string(calls[1].Input), "rm -rf data") || calls[1].Later != nil {
			t.Errorf("the calls are %+v, %v", calls, err)
		}
	})
}
