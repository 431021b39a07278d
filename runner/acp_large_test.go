package runner_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

// writes are helpers of an agent that is a script, which writes a file of SIZE bytes.
const writes = `X=$(head -c SIZE /dev/zero | tr '\0' x)
what='"title":"Write f.txt","kind":"edit","locations":[{"path":"f.txt"}],"rawInput":{"filePath":"f.txt","content":"'$X'"}'
news() { say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"'"$1"'"'"$2"'}'; }
ask() { echo '{"jsonrpc":"2.0","id":'"${1:-0}"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1",'"$what"'},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}'; }
`

// largeCase is what an agent does with a call, and what people do meanwhile.
type largeCase struct {
	does    string
	rules   []journal.Rule
	reply   store.Decision
	stops   int    // 1: the server is left while the request waits, 2: while the call runs; 0: never
	want    string // the facts
	hears   string // a part of what the agent is told
	unknown bool   // it dies while the call runs, and a person says what became of it
}

const (
	writeIs  = "edit effect; "
	writeAsk = `asked edit [f.txt] "Write f.txt" 11; once; by person; `
)

// The input of a call that is so long that it lies in a blob is judged, compared and
// named like a short one.
//
// proves JRN-6 PER-1 PER-6 REC-7 CAL-6
func TestACP_ALongInputIsAnInput(t *testing.T) {
	t.Parallel()
	once := store.Decision{Reply: journal.ReplyOnce}
	edits := func(action string) []journal.Rule {
		return []journal.Rule{{Permission: "edit", Pattern: "*", Action: action}}
	}
	for name, c := range map[string]largeCase{
		"asked":              {does: `ask; hear; news completed; stop 3`, reply: once, want: writeIs + writeAsk + "succeeded"},
		"allowed by rule":    {does: `ask; hear; news completed; stop 3`, rules: edits("allow"), want: writeIs + "by rule; succeeded"},
		"denied by rule":     {does: `ask; hear; news failed; stop 3`, rules: edits("deny"), want: writeIs + "refused"},
		"told before":        {does: `news pending ",$what"; ask; hear; news completed; stop 3`, reply: once, want: writeIs + writeAsk + "succeeded"},
		"described later":    {does: `ask; hear; news in_progress ',"title":"Writing f.txt"'; news completed; stop 3`, reply: once, want: writeIs + writeAsk + "described dispatched; succeeded"},
		"described by less":  {does: `ask; hear; news in_progress ',"rawInput":{"filePath":"f.txt"}'; news completed; stop 3`, reply: once, want: writeIs + writeAsk + "described dispatched; succeeded"},
		"contradicted later": {does: `ask; hear; news in_progress ',"rawInput":{"filePath":"/etc/f","content":"'$X'"}'; news completed; stop 3`, reply: once, want: writeIs + writeAsk + "contradicted dispatched; succeeded"},
		"restarted while it waits": {
			does: `ask; read -r x < gate; news pending; text between; hear; news completed; stop 3`, reply: once, stops: 1, want: writeIs + writeAsk + "succeeded",
		},
		"restarted while it runs": {
			does:  `ask; hear; news in_progress; text one; read -r x < gate; news in_progress ",$what"; news in_progress ',"title":"Writing f.txt"'; news completed; stop 3`,
			reply: once, stops: 2, want: writeIs + writeAsk + "described dispatched; succeeded",
		},
		"rejected": {
			does: `ask; hear; news failed; stop 3; hear; stop 5`, reply: store.Decision{Reply: journal.ReplyReject, Message: "not that"},
			want: writeIs + `asked edit [f.txt] "Write f.txt" 11; reject; refused`, hears: `I rejected \"Write f.txt\": not that`,
		},
		"a verdict": {
			does: `[ -e again ] || { touch again; ask; hear; news in_progress; kill -9 $$; }; stop 3`, reply: once, unknown: true,
			want: writeIs + writeAsk + "unknown", hears: `The outcome of \"Write f.txt\" was unknown`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				for _, size := range []string{"50", "50000"} {
					got, heard := c.run(t, s, size)
					if got != c.want {
						t.Errorf("of %s bytes:\n  %s\nwant\n  %s", size, got, c.want)
					}
					if !strings.Contains(heard, c.hears) {
						t.Errorf("of %s bytes the agent heard %q, want %q in it", size, heard, c.hears)
					}
				}
				if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
					t.Errorf("verify says %+v, %v", report.Checks, err)
				}
			})
		})
	}
}

func (c *largeCase) run(t *testing.T, s *store.Store, size string) (facts, heard string) {
	t.Helper()
	file, with := scripted(t, strings.Replace(writes, "SIZE", size, 1)+"hear; "+c.does+"; read -r l")
	b := setup(t, s, with, brief)
	gate := b.fifo("gate")
	r := b.start()
	id := b.session("Do it", byFake, asking, func(n *store.NewSession) { n.Rules = c.rules })
	if c.reply.Reply != "" {
		b.untilKind(id, journal.KindPermissionAsked, 1)
		if c.stops == 1 {
			r = b.restart(r, id)
			open(t, gate)
			b.untilKind(id, journal.KindMessageDelta, 1)
		}
		for rs := b.pending(id); len(rs) > 0; rs = b.pending(id) {
			d := c.reply
			d.Digest = rs[0].Digest
			b.decide(rs[0].ID, d)
		}
	}
	if c.stops == 2 {
		b.untilKind(id, journal.KindMessageDelta, 1)
		b.restart(r, id)
		open(t, gate)
	}
	if c.unknown {
		b.resolveAll(id)
	}
	b.until(id, "it is done", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return factsOf(t, storetest.Events(t, s, id)), string(data)
}

// restart has another worker follow a session.
func (b *bench) restart(r *runner.Runner, id string) *runner.Runner {
	b.t.Helper()
	r.Stop()
	next := b.next()
	b.until(id, "it is followed again", func(v store.Session) bool { return v.Claim != nil && v.Claim.WorkerID == b.opts.WorkerID })
	return next
}

// resolveAll says of what is unknown that it did not happen, and has the agent go on.
func (b *bench) resolveAll(id string) {
	b.t.Helper()
	v := b.until(id, "it is unknown", func(v store.Session) bool { return v.State.Base == journal.StateUncertain && v.Claim == nil })
	for _, call := range v.State.UnknownCalls {
		if _, err := b.s.ResolveCall(b.t.Context(), b.owner, call, store.CallResolution{Outcome: journal.DidNotHappen, Evidence: "looked", Then: journal.ThenContinue}); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, a := range v.State.UnknownAttempts {
		if _, err := b.s.ResolveAttempt(b.t.Context(), b.owner, a, store.AttemptResolution{Outcome: journal.AttemptAbandon, Then: journal.ThenContinue}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// factsOf says what stands in a journal about a call and its requests, but for inputs.
func factsOf(t *testing.T, events []journal.Event) string {
	t.Helper()
	var out []string
	for i := range events {
		body, err := events[i].Decode()
		if err != nil {
			t.Fatal(err)
		}
		switch b := body.(type) {
		case *journal.CallProposed:
			out = append(out, b.Tool+" "+string(b.Effect))
		case *journal.CallDescribed:
			out = append(out, "described "+string(b.Late))
		case *journal.CallContradicted:
			out = append(out, "contradicted "+string(b.Late))
		case *journal.PermissionAsked:
			var meta struct {
				Command string `json:"command"`
				Bytes   int    `json:"command_bytes"`
			}
			if err := json.Unmarshal(b.Metadata, &meta); err != nil {
				t.Error(err)
			}
			out = append(out, fmt.Sprintf("asked %s %v %q %d", b.Permission, b.Resources, meta.Command, meta.Bytes))
		case *journal.PermissionReplied:
			out = append(out, string(b.Reply))
		case *journal.PermissionCancelled:
			out = append(out, "request cancelled: "+b.Reason)
		case *journal.CallDispatched:
			out = append(out, "by "+string(b.AllowedBy.Type))
		case *journal.CallSettled:
			out = append(out, string(b.State))
		case *journal.CallUnknown:
			out = append(out, "unknown")
		case *journal.CallResolved:
		}
	}
	return strings.Join(out, "; ")
}

// A call of a long input that is called otherwise again and again has its input written
// once more when it ends, and is then called as it was last; a short one is called so at once.
//
// proves JRN-5 JRN-6
func TestACP_LongCallIsRenamed(t *testing.T) {
	t.Parallel()
	for size, most := range map[string]int{"50": 30, "50000": 2} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, `x=$(head -c `+size+` /dev/zero | tr '\0' x)
t() { say '{"sessionUpdate":"'$1'","toolCallId":"t1","title":"'"$2"'"'"$3"'}'; }
hear; t tool_call "Write 0" ',"kind":"edit","rawInput":{"path":"f.txt","text":"'$x'"},"status":"pending"'
for n in $(seq 10); do t tool_call_update "Write $n"; done
t tool_call_update "Write 11" ',"status":"in_progress"'
for n in $(seq 12 30); do t tool_call_update "Write $n" ',"status":"in_progress"'; done
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				b.untilState(id, journal.StateReady)
				events := storetest.Events(t, s, id)
				if n := storetest.CountKind(events, journal.KindCallDescribed); n != most {
					t.Errorf("it was described %d times, want %d", n, most)
				}
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].State != journal.CallSucceeded {
					t.Fatalf("its calls are %+v, %v", calls, err)
				}
				c, err := s.Call(t.Context(), b.owner, calls[0].ID)
				if err != nil || c.Title() != "Write 30" {
					t.Errorf("it is called %q, %v", c.Title(), err)
				}
			})
		})
	}
}

// A call whose input is missing from the journal is asked about, whatever the rules allow
// and whoever was asked before: nobody can tell what it is. Its turn goes on.
//
// proves PER-1 CAL-1 CAL-9
func TestACP_ALongInputIsMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does string
		asks bool
		want string
	}{
		"while a person is asked": {
			`ask; hear; news in_progress; news completed; stop 3`, true,
			writeIs + `asked edit [f.txt] "Write f.txt" 11; request cancelled: what would be run has changed; asked edit [what it was said to be, which can’t be read any more] "Write f.txt" 11; once; by person; succeeded`,
		},
		"while it runs": {`news in_progress; sleep 0.2; text on; read -r x < gate; news in_progress ',"title":"Write more"'; news completed; stop 3`, false, writeIs + "by agent; succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
				s := db.OpenUnchecked(t)
				_, with := scripted(t, strings.Replace(writes, "SIZE", "50000", 1)+`hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1",'"$what"'}'; `+c.does+`; read -r l`, func(o *acp.Options) { o.Announces = time.Millisecond })
				b := setup(t, s, with, brief)
				gate := b.fifo("gate")
				r := b.start()
				id := b.session("Do it", byFake, asking)
				if c.asks {
					b.untilKind(id, journal.KindPermissionAsked, 1)
				} else {
					b.untilKind(id, journal.KindMessageDelta, 1)
				}
				r.Stop()
				raw := db.SQL(t)
				db.MustExec(t, raw, `UPDATE session SET rules_version = rules_version + 1, rules = '[{"permission":"edit","pattern":"*","action":"allow"}]' WHERE id = ?`, id)
				db.MustExec(t, raw, "DELETE FROM blob WHERE session_id = ?", id)
				b.next()
				if c.asks {
					b.untilKind(id, journal.KindPermissionAsked, 2)
					d := store.Decision{Reply: journal.ReplyOnce, Digest: b.pending(id)[0].Digest}
					b.decide(b.pending(id)[0].ID, d)
				} else {
					open(t, gate)
				}
				b.untilState(id, journal.StateReady)
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].State != journal.CallSucceeded {
					t.Fatalf("its calls are %+v, %v", calls, err)
				}
				if got := factsOf(t, storetest.Events(t, s, id)); got != c.want {
					t.Errorf("the facts are\n  %s\nwant\n  %s", got, c.want)
				}
			})
		})
	}
}
