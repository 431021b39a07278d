package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
)

// hello is how an agent that is a script begins: it opens a session.
const hello = `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
say() { echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
text() { say '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
hear() { read -r l; printf '%s\n' "$l" >> "$HEARD"; }
stop() { echo '{"jsonrpc":"2.0","id":'"$1"',"result":{"stopReason":"end_turn"}}'; }
`

// scripted makes the worker's agent one that follows a script for sh.
func scripted(t *testing.T, body string, as ...func(*acp.Options)) (heard string, with func(*runner.Options)) {
	t.Helper()
	return scriptedWhole(t, hello+body, as...)
}

func scriptedWhole(t *testing.T, body string, as ...func(*acp.Options)) (heard string, with func(*runner.Options)) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.sh")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	heard = filepath.Join(dir, "heard")
	return heard, func(o *runner.Options) {
		agent := acp.Options{Name: "fake", Command: []string{"sh", path}, Env: append(tool.BaseEnv(os.Environ()), "HEARD="+heard)}
		for _, f := range as {
			f(&agent)
		}
		o.Agents = append(o.Agents, acp.New(agent))
	}
}

func byFake(n *store.NewSession) { n.Agent = "fake" }

// proves ATT-1 REC-12
func TestACP_AnswersAPrompt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; text 'one '; text two; stop 3; hear; text three; stop 4; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Say it", byFake)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		b.submit(id, "Again", journal.Queue)
		b.until(id, "it has answered twice", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
		got, err := os.ReadFile(heard)
		if err != nil || strings.Count(string(got), "\n") != 2 || !strings.Contains(string(got), `"text":"Say it"`) {
			t.Errorf("the agent heard %q, %v", got, err)
		}
	})
}

// A stop at the next safe point lets an agent finish its whole answer, and the turn says
// that nothing of it was left.
//
// proves COO-4 PRO-4
func TestACP_StopsAfterItsAnswer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear; text 'before '; echo up > up; read -r x < gate; text after; stop 3; read -r l`)
		b := setup(t, s, with)
		gate, up := b.fifo("gate"), b.fifo("up")
		b.start()
		id := b.session("Say it", byFake)
		awaitLine(t, up)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptBoundary); err != nil {
			t.Fatal(err)
		}
		open(t, gate)
		v := b.untilState(id, journal.StateStopped)
		said := storetest.Body[*journal.MessageCompleted](t, storetest.Events(t, s, id)).Text.S
		if !v.State.Turn.Done || !v.State.Held || said != "before after" {
			t.Errorf("it said %q, and the turn ended as %+v", said, v.State.Turn)
		}
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil { // it isn't told to go on with nothing
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindAttemptDispatched); n != 1 {
			t.Errorf("%d prompts were sent", n)
		}
	})
}

// What an agent says after it has thought, or run something, is another message: one
// that was said whole is not added to.
//
// proves JRN-1
func TestACP_TextAndThoughtInTurns(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `think() { say '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
hear; think hm; text one; text ' and'; think ah; text two; stop 3; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Say it", byFake)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		var got []string
		seen := map[string]bool{}
		for _, ev := range storetest.Events(t, s, id) {
			body, err := ev.Decode()
			if m, ok := body.(*journal.MessageCompleted); ok && err == nil {
				got = append(got, string(m.Part)+" "+m.Text.S)
				if seen[m.MessageID] {
					t.Errorf("%q is said under an id that was said whole before", m.Text.S)
				}
				seen[m.MessageID] = true
			}
		}
		if want := "reasoning hm|text one and|reasoning ah|text two"; strings.Join(got, "|") != want {
			t.Errorf("messages %q, want %s", got, want)
		}
	})
}

// A secret that an agent says letter by letter is masked in the pieces, too: what may
// be its start waits for its rest, over a restart, and for nothing else. What the agent
// asks or does next ends the wait.
//
// proves OWN-3 JRN-8 JRN-5
func TestACP_SpellsASecret(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const secret = "s3cr3t-spelt"
		_, with := scripted(t, `spell() { for c in "$@"; do text "$c"; done; }
out() { say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"'$1'","content":[{"type":"content","content":{"type":"text","text":"'"$2"'"}}]}'; }
hear; text 'it is '; spell s 3 c r 3 t; echo up > up; read -r x < gate
spell - s p e l t; text ', '; spell s 3 c r 3; text 'x, s3cr3t-spel'
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"look","kind":"read","status":"in_progress"}'
out in_progress 'a s3cr'; out in_progress 'a s3cr3t-sp'; out in_progress 'a s3cr3t-spelt b s'; out completed 'a s3cr3t-spelt b s3c'
text 't, s3'; stop 3; read -r l`)
		b := setup(t, s, with, brief)
		s.Mask(b.owner, secret)
		gate, up := b.fifo("gate"), b.fifo("up")
		r := b.start()
		id := b.session("Say it", byFake)
		awaitLine(t, up)
		b.untilKind(id, journal.KindMessageDelta, 1)
		r.Stop()
		b.next()
		b.untilKind(id, journal.KindStepRecovered, 1)
		open(t, gate)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		streamed, output := "", ""
		var whole []string
		for _, ev := range storetest.Events(t, s, id) {
			body, err := ev.Decode()
			if err != nil {
				t.Fatal(err)
			}
			switch m := body.(type) {
			case *journal.MessageDelta:
				streamed += m.Text.S
			case *journal.MessageCompleted:
				whole = append(whole, m.Text.S)
			case *journal.CallOutput:
				output += m.Text.S
			}
		}
		const first = "it is [hidden], s3cr3x, [hidden]"
		if streamed != first+"t, s3" || strings.Join(whole, "|") != first+"|t, s3" {
			t.Errorf("it said %q, and whole %q", streamed, whole)
		}
		if output != "a [hidden] b s3c" {
			t.Errorf("its tool put out %q", output)
		}
	})
}

// A restart in the middle of a text interrupts nothing: the text goes on, and the
// prompt isn't sent again.
//
// proves REC-10 ATT-3 JRN-5
func TestACP_TextGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; text 'before '; echo up > up; read -r x < gate; text after; stop 3; read -r l`)
		b := setup(t, s, with, brief)
		gate, up := b.fifo("gate"), b.fifo("up")
		r := b.start()
		id := b.session("Say it", byFake)
		awaitLine(t, up)
		b.untilKind(id, journal.KindMessageDelta, 1)
		r.Stop()
		b.next()
		b.untilKind(id, journal.KindStepRecovered, 1)
		open(t, gate)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		events := storetest.Events(t, s, id)
		if said := storetest.Body[*journal.MessageCompleted](t, events); said.Text.S != "before after" {
			t.Errorf("the message is %q", said.Text.S)
		}
		for kind, want := range map[journal.Kind]int{journal.KindAttemptDispatched: 1, journal.KindAttemptUnknown: 0, journal.KindMessageCompleted: 1, journal.KindAgentStarted: 1} {
			if n := storetest.CountKind(events, kind); n != want {
				t.Errorf("%d %s, want %d", n, kind, want)
			}
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "\n") != 1 {
			t.Errorf("the agent heard %q, %v; want one prompt", got, err)
		}
	})
}

const askRun = `hear
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"pending","rawInput":{"command":"touch made"}}'
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}'
echo '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"no","kind":"reject_once","name":"No"},{"optionId":"ever","kind":"allow_always","name":"Ever"},{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'
hear
case $l in
*'"optionId":"yes"'*) echo ran >> made
  say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"made it"}}]}' ;;
*) say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}' ;;
esac
stop 3
`

// A request that is open when the server goes is answered after it, and the answer
// reaches the agent once.
//
// proves REC-7 PER-1 PER-4 CAL-1
func TestACP_AnOpenRequestOutlivesTheServer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, askRun+"read -r l")
		b := setup(t, s, with, brief)
		r := b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		r.Stop()
		b.next()
		v := b.until(id, "it is followed again", func(v store.Session) bool { return v.Claim != nil && v.Claim.WorkerID == b.opts.WorkerID })
		rs := b.pending(id)
		if len(rs) != 1 || rs[0].Permission != "shell" || rs[0].Resources[0] != "touch made" {
			t.Fatalf("requests %+v of %+v", rs, v.State)
		}
		b.decide(rs[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: rs[0].Digest})
		b.untilState(id, journal.StateReady)
		if b.file("made") != "ran\n" {
			t.Errorf("it ran %q", b.file("made"))
		}
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 1 || calls[0].State != journal.CallSucceeded || calls[0].AllowedBy.Type != journal.AllowedByPerson || b.output(id, 0) != "made it" {
			t.Errorf("calls %+v, %v; output %q", calls, err, b.output(id, 0))
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "\n") != 2 {
			t.Errorf("the agent heard %q, %v; want a prompt and an answer", got, err)
		}
	})
}

// An agent that says of a command that it runs, and asks a while later whether it may,
// hasn't done it without asking. The first of a process may take some seconds to.
//
// proves PER-1 CAL-4
func TestACP_AsksAfterItAnnounced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, strings.Replace(askRun, "echo '{", "sleep 4; echo '{", 1)+"read -r l")
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyOnce})
		b.untilState(id, journal.StateReady)
		if n := storetest.CountKind(storetest.Events(t, s, id), journal.KindCallDispatched); n != 1 {
			t.Errorf("it was dispatched %d times: %s", n, b.dump(id))
		}
	})
}

// Some agents send what a command printed as Markdown.
//
// proves JRN-5
func TestACP_OutputIsWhatWasPrinted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"ls","kind":"execute","status":"in_progress"}'
printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"`+"```console\\na\\nb\\n```"+`"}}]}}}'
stop 3; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		b.untilState(id, journal.StateReady)
		if got := b.output(id, 0); got != "a\nb\n" {
			t.Errorf("the command printed %q", got)
		}
	})
}

// proves PER-2 PER-3
func TestACP_Rejections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for message, want := range map[string]journal.ExecutionState{"not that": journal.StateReady, "": journal.StateStopped} {
			heard, with := scripted(t, askRun+"hear; stop 5; read -r l")
			b := setup(t, s, with)
			b.start()
			id := b.session("Do it", byFake, asking)
			b.untilKind(id, journal.KindPermissionAsked, 1)
			b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: message})
			b.until(id, "it has ended", func(v store.Session) bool { return v.State.Base == want && v.Claim == nil })
			wantReason := map[journal.ExecutionState]string{journal.StateStopped: "rejected"}[want]
			if end := storetest.Body[*journal.TurnEnded](t, storetest.Events(t, s, id)); end.Reason != wantReason {
				t.Errorf("the turn ended %q, want %q", end.Reason, wantReason)
			}
			got, err := os.ReadFile(heard)
			if err != nil || b.file("made") != "" || !strings.Contains(string(got), map[bool]string{true: `rejected \"touch made\": not that`, false: "cancel"}[message != ""]) {
				t.Errorf("the agent heard %q, %v, and made %q", got, err, b.file("made"))
			}
		}
	})
}

// proves ATT-3 ATT-4 ATT-6 CAL-4 CAL-6
func TestACP_ADeadAgentLeavesItsAttemptUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; text half; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'
[ -e again ] || { touch again; printf '\033[91m\033[1moops\033[0m\n' >&2; kill -9 $$; }
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'; stop 3; hear; stop 4; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		v := b.until(id, "it is unknown", func(v store.Session) bool { return v.State.Base == journal.StateUncertain && v.Claim == nil })
		if len(v.State.UnknownAttempts) != 1 || len(v.State.UnknownCalls) != 1 {
			t.Fatalf("%+v", v.State)
		}
		if !strings.Contains(b.dump(id), "Its last words: “oops”.") || !strings.Contains(b.dump(id), `"text":"half"`) {
			t.Errorf("the journal doesn't say what is known: %s", b.dump(id))
		}
		if _, err := s.ResolveCall(t.Context(), b.owner, v.State.UnknownCalls[0], store.CallResolution{Outcome: journal.DidNotHappen, Evidence: "looked", Then: journal.ThenContinue}); err != nil {
			t.Fatal(err)
		}
		// The verdict is told also to a turn that doesn't continue this one.
		if _, err := s.ResolveAttempt(t.Context(), b.owner, v.State.UnknownAttempts[0], store.AttemptResolution{Outcome: journal.AttemptAbandon, Then: journal.ThenStay}); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateStopped)
		b.submit(id, "Then this", journal.Queue)
		b.untilState(id, journal.StateReady)
		b.submit(id, "And that", journal.Queue)
		b.until(id, "it has done that, too", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 3 && v.Claim == nil
		})
		got, err := os.ReadFile(heard)
		if err != nil || strings.Count(string(got), "Do it") != 1 || strings.Count(string(got), "a person says: it did not happen. looked") != 1 || strings.Contains(string(got), "did_not_happen") || !strings.Contains(string(got), `looked\n"},{"type":"text","text":"Then this"`) {
			t.Errorf("the agents heard %q, %v; want the prompt once, then what was found out, once", got, err)
		}
	})
}

// An agent that can't go on in another process keeps its own at a stop. What its command
// has left behind is ended; what the agent runs itself goes on, and so does what was
// there before the prompt.
//
// proves COO-4 COO-7
func TestACP_AStopEndsWhatACommandLeft(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scriptedWhole(t, strings.Replace(hello, `{"loadSession":true}`, `{}`, 1)+`left() { (setsid sh -c 'echo $$ > '"$1"'; trap "" HUP; sleep 1000 & wait' >/dev/null 2>&1 &); until [ -s "$1" ]; do sleep 0.01; done; }
left older; sleep 1000 & echo $! > helper; sleep 0.05
hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'
left stray; sh -c 'left=1; sleep 1000' & echo $! > own; text on; hear
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; hear; text again; stop 5; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Deploy", byFake)
		b.untilKind(id, journal.KindMessageDelta, 1)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		v := b.untilState(id, journal.StateStopped)
		for name, lives := range map[string]bool{"older": true, "helper": true, "own": true, "stray": false} {
			pid, err := strconv.Atoi(strings.TrimSpace(b.file(name)))
			if err != nil || (syscall.Kill(pid, 0) == nil) != lives {
				t.Errorf("%s: process %d, %v; want that it lives: %v", name, pid, err, lives)
			}
		}
		if v.State.Process == nil {
			t.Error("its process was ended, which alone has its conversation")
		}
		b.submit(id, "Again", journal.Queue)
		b.untilState(id, journal.StateReady)
	})
}

// A person stops the turn; what becomes of it depends on the agent.
//
// proves COO-4 ATT-3
func TestACP_IsStopped(t *testing.T) {
	t.Parallel()
	cancelled := `echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; `
	ask := `echo '{"jsonrpc":"2.0","id":"late","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"x","kind":"execute"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}'; `
	runs := `say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'; `
	for name, c := range map[string]struct {
		does  string // after it was told to stop
		runs  string // what it does meanwhile
		ends  journal.ExecutionState
		call  journal.CallState
		hears []string
		lives bool // its process does
	}{
		"it stops":                      {does: cancelled, ends: journal.StateStopped, hears: []string{"session/cancel"}, lives: true},
		"it asks once more":             {does: ask + "hear; " + cancelled, ends: journal.StateStopped, hears: []string{"session/cancel", `{"jsonrpc":"2.0","id":"late","result":{"outcome":{"outcome":"cancelled"}}}`}, call: journal.CallCancelled, lives: true},
		"it stops and leaves a command": {runs: runs, does: cancelled, ends: journal.StateStopped, hears: []string{"session/cancel"}, call: journal.CallCancelled},
		"it doesn't stop":               {runs: runs, does: `while read -r l; do :; done; sleep 1000`, ends: journal.StateUncertain, hears: []string{"session/cancel"}, call: journal.CallIsUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, "hear; text on; "+c.runs+`sleep 1000 & echo $! > child; hear; `+c.does+"read -r l", func(o *acp.Options) {
					o.CancelWithin, o.ExitWithin = patience, patience
					if c.ends == journal.StateUncertain {
						o.CancelWithin, o.ExitWithin = time.Millisecond, time.Millisecond
					}
				})
				b := setup(t, s, with)
				b.start()
				id := b.session("Go on and on", byFake)
				b.untilKind(id, journal.KindMessageDelta, 1)
				if c.runs != "" {
					b.untilKind(id, journal.KindCallDispatched, 1)
				}
				if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
					t.Fatal(err)
				}
				v := b.untilState(id, c.ends)
				got, err := os.ReadFile(heard)
				for _, want := range c.hears {
					if err != nil || strings.Count(string(got), want) != 1 {
						t.Errorf("the agent heard %q, %v; want %s once", got, err, want)
					}
				}
				if calls, err := s.Calls(t.Context(), b.owner, id, 0); err != nil || len(calls) != boolInt(c.call != "") || (len(calls) > 0 && calls[0].State != c.call) {
					t.Errorf("calls %+v, %v; want one that is %q", calls, err, c.call)
				}
				child, err := strconv.Atoi(strings.TrimSpace(b.file("child")))
				if err != nil || (v.State.Process != nil) != c.lives || (syscall.Kill(child, 0) == nil) != c.lives {
					t.Errorf("its process is %+v and its child %d lives (%v), want %v", v.State.Process, child, err, c.lives)
				}
				if events := storetest.Events(t, s, id); v.State.Turn.Outcome != journal.Stopped || storetest.CountKind(events, journal.KindPermissionAsked) != 0 {
					t.Errorf("the turn ended %s:\n%s", v.State.Turn.Outcome, b.dump(id))
				}
			})
		})
	}
}

// An agent with which nothing can be done is ended: its turn fails, and what it was
// told is unknown.
//
// proves ATT-3 COO-7
func TestACP_CantBeWorkedWith(t *testing.T) {
	t.Parallel()
	const long = `head -c 100000 /dev/zero | tr '\0' x; `
	for name, c := range map[string]struct {
		body, words string
		ends        journal.ExecutionState
	}{
		"it never answers":                {body: `echo nonsense; exec sleep 1000`, ends: journal.StateFailed, words: "did not open a session in time"},
		"a line is too long for opening":  {body: long + `exec sleep 1000`, ends: journal.StateFailed, words: "a line that is too long"},
		"a line is too long for the turn": {body: hello + `hear; text before; ` + long + `sleep 1000`, ends: journal.StateUncertain, words: "a line that is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, "", func(o *acp.Options) {
					o.ExitWithin, o.MaxLine = time.Millisecond, 50_000
					if strings.HasPrefix(name, "it never") {
						o.OpenWithin = time.Second
					}
				})
				if err := os.WriteFile(filepath.Join(filepath.Dir(heard), "agent.sh"), []byte("echo $$ > pid; "+c.body), 0o600); err != nil {
					t.Fatal(err)
				}
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake)
				v := b.untilState(id, c.ends)
				if !strings.Contains(b.dump(id), c.words) || v.State.Process != nil {
					t.Errorf("it doesn't say %q, or the process is still there: %+v\n%s", c.words, v.State.Process, b.dump(id))
				}
				pid, err := strconv.Atoi(strings.TrimSpace(b.file("pid")))
				if err != nil || syscall.Kill(pid, 0) == nil {
					t.Errorf("process %d lives (%v)", pid, err)
				}
				if text := strings.Contains(b.dump(id), `"text":"before"`); text != (c.ends == journal.StateUncertain) {
					t.Errorf("the text before it: %v", text)
				}
			})
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// An agent that nobody needs is ended at a stop, and the next turn has it go on
// with its own session.
//
// proves REC-12 COO-6
func TestACP_AnIdleAgentIsEndedAndResumed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; text hi; stop 3; read -r l`)
		b := setup(t, s, with)
		r := b.start()
		id := b.session("One", byFake)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		r.Stop()
		b.untilShimsEnd()
		b.next()
		b.submit(id, "Two", journal.Queue)
		b.until(id, "it has answered twice", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
		events := storetest.Events(t, s, id)
		if opened := storetest.Body[*journal.AgentOpened](t, events); opened.How != journal.AgentLoaded || opened.AgentSessionID != "s1" {
			t.Errorf("the second process: %+v", opened)
		}
		if n := storetest.CountKind(events, journal.KindAgentEnded); n != 1 {
			t.Errorf("%d ends of an agent, want that of the first", n)
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/prompt") != 2 {
			t.Errorf("the agents heard %q, %v", got, err)
		}
	})
}

// An agent that needs a sign-in blocks its session, says how, and goes on with what
// was asked once a person says that it was done.
//
// proves ATT-1
func TestACP_WaitsForASignIn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scriptedWhole(t, `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"x","name":"By hand","description":"run fake login"}]}}'
read -r l
[ -e in ] || { echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}'; read -r l; exit; }
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
read -r l; printf '%s\n' "$l" >> "$HEARD"
[ -e still ] || { echo '{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Sign-in has ended"}}'; read -r l; printf '%s\n' "$l" >> "$HEARD"; }
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; echo '{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}'; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		blocked := func(says string) {
			t.Helper()
			v := b.until(id, "it is blocked", func(v store.Session) bool { return v.State.Base == journal.StateBlocked && v.Claim == nil })
			if v.State.Blocked.Cause != journal.BlockSignIn || !strings.Contains(v.State.Blocked.Detail, says) || v.State.Unknowns() != 0 {
				t.Errorf("%+v", v.State.Blocked)
			}
		}
		blocked("run fake login")
		if err := os.WriteFile(filepath.Join(b.dir, "in"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		blocked("Sign-in has ended")
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "Do it") != 2 {
			t.Errorf("the agent heard %q, %v; want the prompt again after the sign-in", got, err)
		}
	})
}

// A stop while the agent waits for a decision ends, although the agent says then that
// the call which it asked for has failed.
//
// proves COO-4 PER-6
func TestACP_IsStoppedWhileItAsks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, strings.Replace(askRun, "hear\ncase", `hear
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}'
echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read -r l; read -r l
case`, 1))
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		if err := s.RequestInterrupt(t.Context(), b.owner, id, journal.InterruptNow); err != nil {
			t.Fatal(err)
		}
		v := b.until(id, "it has stopped", func(v store.Session) bool { return v.State.Base == journal.StateStopped && v.Claim == nil })
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 1 || calls[0].State != journal.CallCancelled || calls[0].N != 0 || len(v.State.Pending) != 0 {
			t.Errorf("calls %+v, %v; %+v", calls, err, v.State)
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/cancel") != 1 {
			t.Errorf("the agent heard %q, %v", got, err)
		}
	})
}

// twice asks two things for one call, the second after the first was answered or with it.
const twice = `perm() { echo '{"jsonrpc":"2.0","id":'"$1"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"touch made","kind":"execute","rawInput":{"command":"touch made"}},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}'; }
hear; perm 0; BETWEEN perm 1; hear; AFTER
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'; stop 3; read -r l`

// Each request of an agent is asked of a person, also the second for one call, and
// one answer is none to the other.
//
// proves PER-1 PER-2 PER-4
func TestACP_AsksTwiceForOneCall(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, at := range map[string][2]string{"one after the other": {"hear;", ""}, "at once": {"", "hear"}} {
			heard, with := scripted(t, strings.NewReplacer("BETWEEN", at[0], "AFTER", at[1]).Replace(twice))
			b := setup(t, s, with)
			b.start()
			id := b.session("Do it", byFake, asking)
			for n := 1; n <= 2; n++ {
				b.untilKind(id, journal.KindPermissionAsked, n)
				if got, err := os.ReadFile(heard); err != nil || strings.Contains(string(got), `"id":1`) {
					t.Errorf("%s: the agent heard %q, %v", name, got, err)
				}
				rs := b.pending(id)
				b.decide(rs[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: rs[0].Digest})
			}
			b.until(id, "it is done", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
			got, err := os.ReadFile(heard)
			if err != nil || strings.Count(string(got), `"optionId":"yes"`) != 2 || strings.Contains(string(got), `"no"`) {
				t.Errorf("%s: the agent heard %q, %v; want two that are allowed", name, got, err)
			}
		}
	})
}

// What an agent has done is not undone by a sign-in that has ended: its attempt was
// worked on, and is not sent again.
//
// proves ATT-1 ATT-3 CAL-4
func TestACP_ASignInThatEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"deploy","kind":"execute","status":"in_progress"}'
echo '{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"expired"}}'; hear; stop 4; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		v := b.until(id, "it is unknown", func(v store.Session) bool { return v.State.Base == journal.StateUncertain && v.Claim == nil })
		if len(v.State.UnknownCalls) != 1 || len(v.State.UnknownAttempts) != 0 {
			t.Errorf("%+v", v.State)
		}
		if _, err := s.ResolveCall(t.Context(), b.owner, v.State.UnknownCalls[0], store.CallResolution{Outcome: journal.Happened, Evidence: "it did", Then: journal.ThenContinue}); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "Do it") != 1 {
			t.Errorf("the agent heard %q, %v; want the prompt once", got, err)
		}
	})
}

// What an agent asks as it ends its turn is answered, and holds up no later turn. What
// it says between two turns is no answer to the next.
//
// proves PER-6 ATT-1
func TestACP_AsksAsItEnds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"execute"}'
printf '%s\n%s\n' '{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}' '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
hear; text 'by the way'; echo said > said; hear; text answer; stop 5; read -r l`)
		b := setup(t, s, with)
		b.start()
		said := b.fifo("said")
		id := b.session("One", byFake)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		awaitLine(t, said)
		b.submit(id, "Two", journal.Queue)
		b.until(id, "it has answered twice", func(v store.Session) bool {
			return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
		})
		if got, err := os.ReadFile(heard); err != nil || !strings.Contains(string(got), `{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"cancelled"}}}`) {
			t.Errorf("the agent heard %q, %v", got, err)
		}
		var order []string
		for _, ev := range storetest.Events(t, s, id) {
			switch body, _ := ev.Decode(); m := body.(type) {
			case *journal.MessageCompleted:
				order = append(order, m.Text.S)
			case *journal.AttemptDispatched:
				order = append(order, "sent")
			}
		}
		if got := strings.Join(order, ", "); got != "sent, by the way, sent, answer" {
			t.Errorf("the journal tells %s", got)
		}
	})
}

// What a rule allows is what the agent would do, whatever else it calls it.
//
// proves PER-1 CAL-2
func TestACP_JudgesWhatWouldBeDone(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		call string // members of the tool call
		asks string // a part of what is asked
	}{
		"another letter case": {`"kind":"execute","rawInput":{"command":"touch made","COMMAND":"echo hi"}`, "touch made"},
		"another folder":      {`"kind":"execute","rawInput":{"command":"cat shadow","workdir":"/etc"}`, "/etc"},
		"a home folder":       {`"kind":"read","rawInput":{"file_path":"~/.bashrc"}`, home},
		"a change beside":     {`"kind":"execute","rawInput":{"command":"echo hi"},"content":[{"type":"diff","path":"/etc/passwd","oldText":"a","newText":"b"}]`, "/etc"},
		"a read that runs":    {`"kind":"read","rawInput":{"command":"rm -rf data"}`, "rm -rf data"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				request := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"x",` + c.call + `},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}`
				_, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"read"}'
echo '`+request+`'; hear; stop 3; read -r l`)
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, func(n *store.NewSession) {
					n.Rules = []journal.Rule{{Permission: "shell", Pattern: "echo *", Action: "allow"}, {Permission: "shell", Pattern: "cat *", Action: "allow"}}
				})
				b.until(id, "it asks for "+c.asks, func(store.Session) bool {
					for _, r := range b.pending(id) {
						if strings.Contains(strings.Join(r.Resources, " "), c.asks) {
							if in := `"directory":"/etc"`; strings.Contains(string(r.Metadata), in) != (name == "another folder") {
								t.Errorf("it is asked with %s", r.Metadata)
							}
							return true
						}
					}
					return false
				})
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || calls[0].N != 0 || (calls[0].Effect == journal.EffectRead) != (name == "a home folder") {
					t.Errorf("calls %+v, %v", calls, err)
				}
			})
		})
	}
}

// A file that a call names several times is reached once.
//
// proves PER-2
func TestACP_WhatIsReachedStandsOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		request := `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1","title":"Write","kind":"edit","rawInput":{"file_path":"note.txt"},"locations":[{"path":"note.txt"}],"content":[{"type":"diff","path":"note.txt","newText":"b"}]},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"}]}}`
		_, with := scripted(t, `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Write","kind":"edit"}'
echo '`+request+`'; hear; stop 3; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		if rs := b.pending(id); len(rs) != 1 || fmt.Sprint(rs[0].Resources) != "[note.txt]" {
			t.Errorf("what is asked: %+v", rs)
		}
	})
}

// What the agent calls something else while a person is asked about it is asked anew.
//
// proves PER-6 PER-1
func TestACP_DescribesAnotherCallWhileItAsks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, strings.Replace(askRun, "hear\ncase", `read -r go < gate
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","rawInput":{"command":"rm -rf data"}}'; hear
case`, 1)+"read -r l")
		b := setup(t, s, with)
		gate := b.fifo("gate")
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		first := b.pending(id)[0]
		open(t, gate)
		b.untilKind(id, journal.KindPermissionAsked, 2)
		rs := b.pending(id)
		if len(rs) != 1 || rs[0].ID == first.ID || fmt.Sprint(rs[0].Resources) != "[touch made rm -rf data]" {
			t.Errorf("what is asked now: %+v", rs)
		}
	})
}

// An agent that a server doesn't offer any more is ended in the middle, once.
//
// proves REC-11 ATT-3
func TestACP_IsNotOfferedAnyMore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, askRun+"read -r l")
		b := setup(t, s, with, brief)
		r := b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		r.Stop()
		b.opts.Agents = b.opts.Agents[:1]
		b.opts.Sweep = 50 * time.Millisecond
		rs := b.pending(id)
		b.decide(rs[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: rs[0].Digest})
		b.next()
		v := b.until(id, "it is unknown", func(v store.Session) bool { return v.State.Base == journal.StateUncertain && v.Claim == nil })
		if len(v.State.UnknownAttempts) != 1 || len(v.State.Pending) != 0 || v.State.Turn.Outcome != journal.Failed {
			t.Errorf("%+v", v.State)
		}
		b.untilShimsEnd()
	})
}

// An agent that died while nobody needed it costs no turn: another process goes on,
// and is told it once. (Of a prompt that was given while it died nobody knows whether
// it was read; so its end is waited for.)
//
// proves REC-12 ATT-1
func TestACP_AnAgentThatDiedIdleIsReplaced(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, `echo $$ > pid; hear; text hi; stop 3; read -r l`)
		b := setup(t, s, with)
		b.start()
		id := b.session("One", byFake)
		const turns = 4
		for n := 1; n <= turns; n++ {
			b.until(id, "it has answered", func(v store.Session) bool {
				return v.State.Base == journal.StateReady && v.State.Turn.Number == n && v.Claim == nil
			})
			pid, err := strconv.Atoi(strings.TrimSpace(b.file("pid")))
			if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
				t.Fatalf("kill the agent %d: %v", pid, err)
			}
			b.untilShimsEnd()
			if n < turns {
				b.submit(id, "Again", journal.Queue)
			}
		}
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "session/prompt") != turns {
			t.Errorf("the agents heard %q, %v", got, err)
		}
	})
}
