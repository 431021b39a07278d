package runner_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// echoes lets run what says something, and nothing that removes anything.
func echoes(n *store.NewSession) {
	n.Preset, n.Rules = "ask_all", []journal.Rule{{Permission: "shell", Pattern: "echo *", Action: "allow"}, {Permission: "shell", Pattern: "rm *", Action: "deny"}}
}

// What was let run stays what its call is. What its agent asks under the same id that is
// something else is another call: a rule that denies it is its reason. What the agent says
// of the id is said of what runs.
//
// proves PER-1 CAL-1 CAL-7 CAL-9
func TestACP_AsksForAnotherWhileOneRuns(t *testing.T) {
	t.Parallel()
	const first = `hear; perm 7 x 'echo a' "$both"; hear; `
	for name, c := range map[string]struct{ does, want string }{
		"denied, and completed":       {`perm 8 x 'rm z' "$both"; hear; out x completed a`, `echo a: succeeded by rule, "a"; rm z: refused, ""`},
		"denied, and failed":          {`perm 8 x 'rm z' "$both"; hear; news x failed ',"title":"rm z"'`, `echo a: failed by rule, ""; rm z: refused, ""`},
		"denied, and said to have":    {`perm 8 x 'rm z' "$both"; hear; out x in_progress a; news x completed ',"title":"rm z","rawInput":{"command":"rm z"}'`, `echo a: succeeded by rule, "a"; rm z: refused, ""`},
		"denied, and goes on":         {`perm 8 x 'rm z' "$both"; hear; out x in_progress a; perm 9 x 'echo a' "$both"; hear; out x completed ab`, `echo a: succeeded by rule, "b"; rm z: refused, ""`}, // of its newest dispatch
		"denied, and asks a third":    {`perm 8 x 'rm z' "$both"; hear; perm 9 x 'echo b' "$both"; hear; out x completed b`, `echo a: succeeded by rule, ""; rm z: refused, ""; echo b: succeeded by rule, "b"`},
		"allowed":                     {`out x in_progress a; perm 8 x 'echo b' "$both"; hear; out x completed ab`, `echo a: succeeded by rule, "a"; echo b: succeeded by rule, "b"`},
		"allowed, and told of both":   {`perm 8 x 'echo b' "$both"; hear; out x in_progress b; news x '' ',"title":"echo a","rawInput":{"command":"echo a"}'; out x completed b`, `echo a: succeeded by rule, ""; echo b: succeeded by rule, "b"`},
		"said to be it first":         {`news x in_progress ',"title":"rm z","rawInput":{"command":"rm z"}'; perm 8 x 'rm z' "$both"; hear; news x completed`, `echo a: succeeded by rule, ""; rm z: refused, ""`},
		"the same once more":          {`perm 8 x 'echo a' "$both"; hear; out x completed a`, `echo a: succeeded by rule, "a"`},
		"of what ran by itself":       {`call y 'echo c' in_progress; out y in_progress c; perm 8 x 'echo a' "$both"; hear; perm 9 y 'rm z' "$both"; hear; news y completed; news x completed`, `echo a: succeeded by rule, ""; echo c: succeeded by agent, "c"; rm z: refused, ""`},
		"without a word how it ended": {`perm 8 x 'rm z' "$both"; hear`, `echo a: unknown by rule, ""; rm z: refused, ""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+first+c.does+`; stop 3; read -r l`)
				b := setup(t, s, with, brief)
				b.start()
				id := b.session("Do it", byFake, echoes)
				b.until(id, "it is over", func(v store.Session) bool {
					return v.Claim == nil && (v.State.Unknowns() > 0 || v.State.Base == journal.StateReady)
				})
				if got := b.callsOf(id); got != c.want {
					t.Errorf("calls\n  %s\nwant\n  %s\n%s", got, c.want, b.dump(id))
				}
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				for _, one := range calls {
					if one.State == journal.CallIsRefused && !strings.Contains(one.Reason, "denied by the rule shell rm *") {
						t.Errorf("it is refused since %q", one.Reason)
					}
				}
				if report, verr := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || verr != nil || !report.OK() {
					t.Errorf("verify says %+v, %v, %v", report.Checks, err, verr)
				}
			})
		})
	}
}

// An agent that edits several files under one id, and says at the end what it did in all, has
// done all of it: nothing of it is unknown, and nothing contradicted.
//
// proves PER-1 CAL-7
func TestACP_EditsSeveralFilesUnderOneID(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, tells+`change() { printf '{"type":"diff","path":"%s","oldText":"old","newText":"new"}' "$1"; }
edit() { echo '{"jsonrpc":"2.0","id":'"$1"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"e","title":"Edit","kind":"edit","locations":[{"path":"'"$2"'"}],"content":['"$(change "$2")"']},"options":'"$both"'}}'; }
hear; edit 7 a.txt; hear; edit 8 b.txt; hear
news e completed ',"content":['"$(change a.txt)"','"$(change b.txt)"'],"locations":[{"path":"a.txt"},{"path":"b.txt"}]'; stop 3; read -r l`)
		b := setup(t, s, with, brief)
		b.start()
		id := b.session("Do it", byFake, asking)
		for n := range 2 {
			b.untilKind(id, journal.KindPermissionAsked, n+1)
			b.allowAny(id)
		}
		b.until(id, "it is over", func(v store.Session) bool {
			return v.Claim == nil && (v.State.Unknowns() > 0 || v.State.Base == journal.StateReady)
		})
		if got := b.callsOf(id); got != `Edit: succeeded by person, ""; Edit: succeeded by person, ""` || strings.Contains(b.dump(id), string(journal.KindCallContradicted)) {
			t.Errorf("calls %s\n%s", got, b.dump(id))
		}
	})
}

// What really ran is what is unknown when its agent dies, whatever it asked under the same id
// since: the same is asked of a person then, although a rule allows it. A server that comes in
// between changes nothing of that.
//
// proves CAL-6 REC-7 PER-1
func TestACP_WhatRanIsUnknownNotWhatWasAskedSince(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"at once": false, "with another server in between": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scriptedWhole(t, `case "$(cat round 2>/dev/null)" in 1) again=1;; esac; echo 1 > round
`+hello+tells+`if [ -n "$again" ]; then hear; perm 9 n 'echo a' "$both"; hear; news n completed; stop 3; read -r l; fi
hear; perm 7 x 'echo a' "$both"; hear; perm 8 x 'date' "$both"; text waits; echo up > up; read -r x < gate; kill -9 $$`)
				b := setup(t, s, with, brief)
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake, echoes)
				awaitLine(t, up)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				if restarted {
					r.Stop()
					b.next()
					b.untilKind(id, journal.KindStepRecovered, 1)
				}
				open(t, gate)
				b.until(id, "it is lost", func(v store.Session) bool { return v.Claim == nil && v.State.Unknowns() > 0 })
				if got := b.callsOf(id); got != `echo a: unknown by rule, ""; date: cancelled, ""` {
					t.Fatalf("calls %s\n%s", got, b.dump(id))
				}
				b.resolveAll(id)
				b.submit(id, "Again", journal.Queue)
				b.untilKind(id, journal.KindPermissionAsked, 2)
				if got := string(b.pending(id)[0].Metadata); !strings.Contains(got, `"same_as_unknown":true`) {
					t.Errorf("it is asked as %s", got)
				}
			})
		})
	}
}

// A person who denies what is asked under the id of what runs has denied that, and its agent
// is told so; what ran goes on, also if another server hears of its end.
//
// proves PER-1 PER-2 REC-7
func TestACP_DeniesAnotherWhileOneRuns(t *testing.T) {
	t.Parallel()
	for name, restarted := range map[string]bool{"at once": false, "with another server in between": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				heard, with := scripted(t, tells+`hear; perm 7 x 'echo a' "$both"; hear; out x in_progress a; perm 8 x date "$both"; hear; text denied; echo up > up; read -r x < gate
out x in_progress ab; news x completed; stop 3; hear; stop 6; read -r l`)
				b := setup(t, s, with, brief)
				gate, up := b.fifo("gate"), b.fifo("up")
				r := b.start()
				id := b.session("Do it", byFake, echoes)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "not that"})
				awaitLine(t, up)
				b.untilKind(id, journal.KindMessageDelta, 1)
				if restarted {
					r.Stop()
					b.next()
					b.untilKind(id, journal.KindStepRecovered, 1)
				}
				open(t, gate)
				b.untilState(id, journal.StateReady)
				if got := b.callsOf(id); got != `echo a: succeeded by rule, "ab"; date: refused, ""` {
					t.Errorf("calls %s\n%s", got, b.dump(id))
				}
				if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "not that") != 1 {
					t.Errorf("it heard %s, %v", got, err)
				}
			})
		})
	}
}

// What its agent does by itself, and asks for afterwards, is denied by a rule as anything
// else: its call goes on, and the journal has the request, and why it was refused.
//
// proves PER-1 JRN-1
func TestACP_ADenialOfWhatRunsLeavesATrace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, tells+`hear; call y 'rm z' in_progress; out y in_progress c; perm 7 x 'echo a' "$both"; hear; perm 8 y 'rm z' "$both"; hear; news y failed; news x completed; stop 3; read -r l`)
		b := setup(t, s, with, brief)
		b.start()
		id := b.session("Do it", byFake, echoes)
		b.untilState(id, journal.StateReady)
		if got := b.callsOf(id); got != `rm z: failed by agent, "c"; echo a: succeeded by rule, ""` {
			t.Errorf("calls %s\n%s", got, b.dump(id))
		}
		if got := b.dump(id); strings.Count(got, "permission.asked") != 1 || strings.Count(got, `"reason":"denied by the rule shell rm *, for rm z"`) != 1 || !strings.Contains(got, "The agent began it without asking, and asks now") {
			t.Errorf("the journal has\n%s", got)
		}
		if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
			t.Errorf("verify says %+v, %v", report.Checks, err)
		}
	})
}

// What is said of a call that was let run, and is asked for once more, takes the place of
// nothing: what was let run stays, and an answer to what was asked doesn't allow what is said.
//
// proves PER-1 PER-4 CAL-9
func TestACP_SaysSomethingElseWhileItAsksOnceMore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, tells+`hear; perm 7 x date "$both"; hear; perm 8 x date "$both"; read -r x < gate; news x in_progress ',"title":"make z","rawInput":{"command":"make z"}'; hear; news x completed; stop 3; read -r l`)
		b := setup(t, s, with, brief)
		gate := b.fifo("gate")
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		b.allowAny(id)
		b.untilKind(id, journal.KindPermissionAsked, 2)
		if got := string(b.pending(id)[0].Metadata); !strings.Contains(got, `"asked_again":"It was let run before`) {
			t.Errorf("it is asked once more as %s", got)
		}
		open(t, gate)
		b.untilKind(id, journal.KindPermissionAsked, 3)
		if got := strings.Join(b.pending(id)[0].Resources, " "); !strings.Contains(got, "date") || !strings.Contains(got, "make z") {
			t.Errorf("it is asked anew for %s", got)
		}
		b.allowAny(id)
		b.untilState(id, journal.StateReady)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 1 || calls[0].Title() != "date" || !strings.Contains(string(calls[0].Later), "make z") {
			t.Errorf("the calls are %+v, %v", calls, err)
		}
	})
}

// What an agent asks under the id of a call that runs is the same only in the same words:
// what it leaves out, renames or says in another place is another call, of which a person
// sees what the request says.
//
// proves PER-1 PER-4 CAL-6
func TestACP_AsksInOtherWordsUnderOneID(t *testing.T) {
	t.Parallel()
	input := func(s string) string { return `"title":"Do","kind":"other","rawInput":` + s }
	const allSame = `"title":"Do","kind":"other"`
	cases := []struct{ name, first, second, shows string }{
		{"another title", `"title":"List users","kind":"other","rawInput":{"id":5}`, `"title":"Delete users","kind":"other","rawInput":{"id":5}`, `Delete users`},
		{"another tool", `"title":"T","kind":"other","name":"list","rawInput":{"id":5}`, `"title":"T","kind":"other","name":"drop","rawInput":{"id":5}`, `"name":"drop"`},
		{"another member", input(`{"to":"prod","dry_run":true}`), input(`{"to":"prod","force":true}`), `"force":true`},
		{"less", input(`{"to":"prod","dry_run":true}`), input(`{"to":"prod"}`), `"input":{"to":"prod"}`},
		{"the values changed over", input(`{"path":"a","file":"b"}`), input(`{"path":"b","file":"a"}`), `{"path":"b","file":"a"}`},
		{"a part of a text", input(`{"content":"all of it"}`), input(`{"content":"all"}`), `"content":"all"`},
		{"nothing", input(`{"content":"all of it"}`), input(`{"content":""}`), `"content":""`},
		{"a part of a change", `"title":"W","kind":"edit","content":[{"type":"diff","path":"f","oldText":"a\nb\n","newText":"c\nd\n"}]`, `"title":"W","kind":"edit","content":[{"type":"diff","path":"f","oldText":"a\nb\n","newText":"c\n"}]`, `"new":"c\n"`},
		{"in another folder", `"title":"R","kind":"execute","rawInput":{"command":"rm x","cwd":"build"}`, `"title":"R","kind":"execute","rawInput":{"command":"rm x"}`, `"input":{"command":"rm x"}`},
		{"the same", input(`{"to":"prod"}`), input(`{ "to" : "prod" }`), ""},
		{"the same, in short", input(`{"to":"prod"}`), allSame, ""},
	}
	var says strings.Builder
	for i, c := range cases {
		for n, what := range []string{c.first, c.second} {
			says.WriteString(strings.ReplaceAll(`ask `+strconv.Itoa(10+2*i+n)+` x`+strconv.Itoa(i)+` '`+what+`'; hear; `, "\n", `\n`))
		}
		says.WriteString(`news x` + strconv.Itoa(i) + ` completed; `)
	}
	const ask = `ask() { printf '%s\n' '{"jsonrpc":"2.0","id":'"$1"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"'"$2"'",'"$3"'},"options":'"$both"'}}'; }; `
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, tells+ask+`hear; `+says.String()+`stop 3; read -r l`)
		b := setup(t, s, with, brief)
		b.start()
		id := b.session("Do it", byFake, asking)
		for i, c := range cases {
			b.untilKind(id, journal.KindPermissionAsked, 2*i+1)
			first := b.pending(id)[0]
			b.allowAny(id)
			b.untilKind(id, journal.KindPermissionAsked, 2*i+2)
			second := b.pending(id)[0]
			call, err := s.Call(t.Context(), b.owner, second.Tool.CallID)
			if err != nil {
				t.Fatal(err)
			}
			if same := second.Tool.CallID == first.Tool.CallID; same != (c.shows == "") || !strings.Contains(string(call.Input), c.shows) {
				t.Errorf("%s: asked as the same call %t, as %s", c.name, same, call.Input)
			}
			b.allowAny(id)
		}
		b.until(id, "it is over", func(v store.Session) bool { return v.Claim == nil && v.State.Base == journal.StateReady })
	})
}

// What an agent adds while a person reads what it asks isn't asked anew, if it says no more
// than what was judged: the folder in which it was judged to run, and words about it.
//
// proves PER-2 CAL-9
func TestACP_SaysWhereItRunsWhileItAsks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		where string
		asks  int
	}{"where it was judged": {"", 1}, "elsewhere": {"/sub", 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+`hear; perm 7 x 'echo a' "$both"; read -r w < gate
news x in_progress ',"locations":[{"path":"'"$w"'"}],"rawInput":{"command":"echo a","description":"Say it","cwd":"'"$w"'"}'; text told; hear; out x completed a; stop 3; read -r l`)
				b := setup(t, s, with, brief)
				gate := b.fifo("gate")
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				if err := os.WriteFile(gate, []byte(b.dir+c.where+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				b.untilKind(id, journal.KindMessageDelta, 1)
				b.untilKind(id, journal.KindPermissionAsked, c.asks)
				b.allowAny(id)
				b.until(id, "it is over", func(v store.Session) bool { return v.Claim == nil && v.State.Base == journal.StateReady })
				asked := 0
				for _, e := range storetest.Events(t, s, id) {
					if e.Kind == journal.KindPermissionAsked {
						asked++
					}
				}
				if got := b.callsOf(id); asked != c.asks || got != `echo a: succeeded by person, "a"` {
					t.Errorf("asked %d times, calls %s\n%s", asked, got, b.dump(id))
				}
			})
		})
	}
}
