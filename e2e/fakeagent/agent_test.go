package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/runner/acp/wire"
)

// turnOf is a script that does these steps for each prompt.
func turnOf(steps string) string { return `{"prompts":[{"steps":[` + steps + `]}]}` }

func wantTold(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestAgent_WithoutScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := w.start()
	session := a.open()
	told, _ := a.until(a.prompt(session, `a "b" <c>`))
	wantTold(t, told, `says You said: a "b" <c>`, "answer end_turn")
	told, _ = a.until(a.send("session/list", nil))
	wantTold(t, told, "error -32601 session/list is not offered")
	told, _ = a.until(a.prompt("other", "x"))
	wantTold(t, told, "error -32002 no session other")
	told, _ = a.until(a.send(wire.MethodSessionPrompt, 5))
	if len(told) != 1 || !strings.HasPrefix(told[0], "error -32602") {
		t.Errorf("got %q", told)
	}
}

func TestAgent_Initialize(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"protocol_version":2,"capabilities":{"loadSession":false},"auth_methods":[{"id":"key","name":"Key"}],"session":{"modes":{"currentModeId":"m"}}}`)
	a := w.start()
	_, answer := a.until(a.send(wire.MethodInitialize, nil))
	got, err := wire.Decode[wire.InitializeResult](answer.Result)
	if err != nil || got.ProtocolVersion != 2 || got.AgentCapabilities != (wire.AgentCapabilities{}) || len(got.AuthMethods) != 1 || got.AgentInfo.Name != "fakeagent" {
		t.Errorf("got %+v, %v", got, err)
	}
	_, answer = a.until(a.send(wire.MethodSessionNew, nil))
	opened, err := wire.Decode[wire.NewSessionResult](answer.Result)
	if err != nil || opened.Modes == nil || opened.Modes.CurrentModeID != "m" {
		t.Errorf("got %+v, %v", opened, err)
	}
	for _, method := range []string{wire.MethodSessionLoad, wire.MethodSessionResume, "session/close"} {
		told, _ := a.until(a.send(method, wire.SessionParams{SessionID: opened.SessionID, Cwd: "/"}))
		wantTold(t, told, "error -32601 "+method+" is not offered")
	}
	told, _ := a.until(a.send(wire.MethodAuthenticate, nil))
	wantTold(t, told, "answer")
}

func TestAgent_FixedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"answers":{
		"session/new":{"error":{"code":-32000,"message":"Authentication required","data":{"x":1}}},
		"session/list":{"result":{"sessions":[]}},
		"session/load":{"hang":true}}}`)
	a := w.start()
	told, answer := a.until(a.send(wire.MethodSessionNew, nil))
	wantTold(t, told, "error -32000 Authentication required")
	if string(answer.Err.Data) != `{"x":1}` {
		t.Errorf("data %s", answer.Err.Data)
	}
	a.send(wire.MethodSessionLoad, nil)
	told, _ = a.until(a.send("session/list", nil))
	wantTold(t, told, "answer")
}

func TestAgent_AnswersAfterAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"answers":{"session/new":{"after_file":"DIR/go"},"initialize":{"after_file":"DIR/log"}}}`)
	a := w.start()
	told, _ := a.until(a.send(wire.MethodInitialize, wire.InitializeParams{ProtocolVersion: 1}))
	wantTold(t, told, "answer")
	id := a.send(wire.MethodSessionNew, wire.SessionParams{Cwd: "/"})
	tick := time.NewTicker(filePoll)
	defer tick.Stop()
	for !slices.Contains(w.log(), "received session/new") {
		<-tick.C
	}
	select {
	case r := <-a.out:
		t.Errorf("it says %q already", tell(r))
	default:
	}
	mustWrite(t, w.path("go"), "")
	told, answer := a.until(id)
	wantTold(t, told, "answer")
	if r, err := wire.Decode[wire.NewSessionResult](answer.Result); err != nil || r.SessionID == "" {
		t.Errorf("answered %s, %v", answer.Result, err)
	}
}

func TestAgent_Opened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"opened":[{"say":"ready {{session}}"},{"stop":"end_turn"}]}`)
	a := w.start()
	session := a.open()
	a.expect("says ready " + session)
	told, _ := a.until(a.prompt(session, ""))
	wantTold(t, told, "answer end_turn")
}

func TestAgent_SessionsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"prompts":[{"match":"first","times":1,"steps":[{"say":"one"}]},{"match":"first","steps":[{"say":"again"}]},{"match":"crash","times":1,"steps":[{"say":"lost?"},{"crash":true}]}]}`)
	a := w.start()
	session := a.open()
	told, _ := a.until(a.prompt(session, "the first"))
	wantTold(t, told, "says one", "answer end_turn")
	told, _ = a.until(a.prompt(session, "crash"))
	wantTold(t, told, "says lost?", "end")
	if status := a.wait(); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", status)
	}
	b := w.start()
	told, _ = b.until(b.send(wire.MethodSessionResume, wire.SessionParams{SessionID: session, Cwd: "/"}))
	wantTold(t, told, "answer")
	told, answer := b.until(b.send(wire.MethodSessionLoad, wire.SessionParams{SessionID: session, Cwd: "/"}))
	wantTold(t, told, "user the first", "says one", "user crash", "says lost?", "answer")
	if string(answer.Result) != "null" {
		t.Errorf("load is answered %s", answer.Result)
	}
	told, _ = b.until(b.prompt(session, "the first"))
	wantTold(t, told, "says again", "answer end_turn")
	told, _ = b.until(b.prompt(session, "crash"))
	wantTold(t, told, "answer end_turn")
}

func TestAgent_SessionsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.forgets = true
	a := w.start()
	session := a.open()
	a.kill()
	b := w.start()
	for _, method := range []string{wire.MethodSessionLoad, wire.MethodSessionResume} {
		told, _ := b.until(b.send(method, wire.SessionParams{SessionID: session, Cwd: "/"}))
		wantTold(t, told, "error -32002 no session "+session)
	}
	if other := b.open(); other == session {
		t.Errorf("%s was given twice", session)
	}
}

// What was received and done is in the log, in order, once.
func TestAgent_Log(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turnOf(`{"permission":{},"then_on":{"allow":[{"run":"exit 3"}]}},{"touch":"DIR/made"}`))
	a := w.start()
	session := a.open()
	a.write([]byte("no JSON\n"), nil)
	a.until(a.prompt(session, "x"))
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	if status := a.wait(); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("ended by %v", status)
	}
	wantTold(t, w.log(),
		"started", "received initialize", "received session/new", "received no JSON", "received session/prompt",
		"step permission", `received {"outcome":{"outcome":"selected","optionId":"once"}}`, "done permission allow once",
		"step run", "done run 3", "step touch", "done touch "+w.path("made"), "answered end_turn", "closed")
}

func TestAgent_PromptsWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"prompts":[{"match":"wait","steps":[{"say":"waiting"},{"wait_file":"DIR/go"},{"say":"one"}]},{"steps":[{"say":"two, turn {{turn}}"}]}]}`)
	a := w.start()
	session := a.open()
	first, second := a.prompt(session, "wait"), a.prompt(session, "x")
	a.expect("says waiting")
	mustWrite(t, w.path("go"), "")
	told, _ := a.until(first)
	wantTold(t, told, "says one", "answer end_turn")
	told, _ = a.until(second)
	wantTold(t, told, "says two, turn 2", "answer end_turn")
}

func TestAgent_Cancel(t *testing.T) {
	t.Parallel()
	const running = `{"run":"echo up; exec sleep 1000"},{"say":"not reached"}`
	for name, tt := range map[string]struct {
		script string
		before []string // told before the cancellation
		choose string
		after  []string
	}{
		"answers at once": {
			turnOf(running),
			[]string{"tool_call call_1_1 pending", "tool_call_update call_1_1 in_progress", "tool_call_update call_1_1 in_progress up\n"},
			"",
			[]string{"answer cancelled"},
		},
		"completes its call": {
			`{"on_cancel":"complete","prompts":[{"steps":[` + running + `]}]}`,
			[]string{"tool_call call_1_1 pending", "tool_call_update call_1_1 in_progress", "tool_call_update call_1_1 in_progress up\n"},
			"",
			[]string{"tool_call_update call_1_1 completed User aborted the command", "answer cancelled"},
		},
		"hangs": {
			turnOf(`{"say":"a"},{"hang":true}`),
			[]string{"says a"},
			"",
			[]string{"answer cancelled"},
		},
		"sleeps": {
			turnOf(`{"say":"a"},{"sleep_ms":1000000}`),
			[]string{"says a"},
			"",
			[]string{"answer cancelled"},
		},
		"asks, and leaves": {
			turnOf(`{"permission":{},"then_on":{"reject":[{"say":"not reached"}]}}`),
			[]string{"request 0 session/request_permission"},
			"none",
			[]string{"answer cancelled"},
		},
		"asks, and waits": {
			turnOf(`{"permission":{},"then_on":{"cancelled":[{"say":"told so"}]}},{"say":"not reached"}`),
			[]string{"request 0 session/request_permission"},
			"",
			[]string{"says told so", "answer cancelled"},
		},
		"waits for an answer of another kind": {
			turnOf(`{"unknown_request":"x/y"}`),
			[]string{"request 0 x/y"},
			"none",
			[]string{"answer cancelled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWorld(t, tt.script).start()
			session := a.open()
			id := a.prompt(session, "x")
			var last received
			for _, want := range tt.before {
				last = a.expect(want)
			}
			a.cancel(session)
			if a.choose = tt.choose; a.choose != "none" && last.m.Kind == wire.KindRequest {
				a.reply(last.m)
			}
			told, _ := a.until(id)
			wantTold(t, told, tt.after...)
			told, _ = a.until(a.prompt("none", ""))
			wantTold(t, told, "error -32002 no session none") // and nothing in between
		})
	}
}

func TestAgent_CancelIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"prompts":[{"on_cancel":"ignore","steps":[{"say":"a"},{"wait_file":"DIR/go"},{"say":"b"}]}]}`)
	a := w.start()
	session := a.open()
	id := a.prompt(session, "x")
	a.expect("says a")
	a.cancel(session)
	a.until(a.send(wire.MethodAuthenticate, nil)) // it has read on
	mustWrite(t, w.path("go"), "")
	told, _ := a.until(id)
	wantTold(t, told, "says b", "answer end_turn")
}

func TestAgent_CancelIsAnsweredLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"on_cancel":{"after_file":"DIR/go"},"prompts":[{"steps":[{"say":"a"},{"hang":true}]}]}`)
	a := w.start()
	session := a.open()
	id, queued := a.prompt(session, "x"), a.prompt(session, "y")
	a.expect("says a")
	a.cancel(session)
	told, _ := a.until(a.send(wire.MethodAuthenticate, nil))
	wantTold(t, told, "answer")
	mustWrite(t, w.path("go"), "")
	told, _ = a.until(id)
	wantTold(t, told, "answer cancelled")
	told, _ = a.until(queued) // it was cancelled in the queue
	wantTold(t, told, "answer cancelled")
}

// At the end of stdin a command is ended, and nothing more is answered.
func TestAgent_EndOfStdin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turnOf(`{"run":"echo up; exec sleep 1000"}`))
	a := w.start()
	a.prompt(a.open(), "x")
	a.expect("tool_call call_1_1 pending")
	a.expect("tool_call_update call_1_1 in_progress")
	a.expect("tool_call_update call_1_1 in_progress up\n")
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	if r, ok := a.next(); ok {
		t.Errorf("then it says %q", tell(r))
	}
	if status := a.wait(); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("ended by %v", status)
	}
	if log := w.log(); log[len(log)-1] != "done run -1" {
		t.Errorf("log %q, want that the command was ended", log)
	}
}

func TestAgent_EndOfStdinIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"on_eof":"ignore","prompts":[{"steps":[{"wait_file":"DIR/go"},{"say":"still there"}]}]}`)
	a := w.start()
	id := a.prompt(a.open(), "x")
	if err := a.in.Close(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, w.path("go"), "")
	told, _ := a.until(id)
	wantTold(t, told, "says still there", "answer end_turn")
	a.kill()
	if status := a.wait(); status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", status)
	}
}

// A command outlives a killed agent, as that of opencode does.
func TestAgent_KilledLeavesItsCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, turnOf(`{"run":"echo up; read line < DIR/gate; echo $line > DIR/done"}`))
	gate, done := mustPipe(t, w.path("gate")), mustPipe(t, w.path("done"))
	a := w.start()
	a.prompt(a.open(), "x")
	a.expect("tool_call call_1_1 pending")
	a.expect("tool_call_update call_1_1 in_progress")
	a.expect("tool_call_update call_1_1 in_progress up\n")
	a.kill()
	if _, err := gate.WriteString("go on\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := done.Read(buf)
	if got := string(buf[:n]); got != "go on\n" {
		t.Errorf("the command said %q, %v", got, err)
	}
}

// mustPipe makes a named pipe, and holds both of its ends.
func mustPipe(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return f
}
