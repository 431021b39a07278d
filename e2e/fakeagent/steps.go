package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/runner/acp/wire"
)

// kind is what a word does.
type kind struct {
	check func(arg json.RawMessage) error // when the script is read
	do    func(t *turn, s step) error
	with  []string // words that may stand beside it
}

// kinds is the table of the words; doc.go tells what they mean.
var kinds map[string]kind

func init() { // they lead to steps, and so to the table
	kinds = map[string]kind{
		"update":          of(doUpdate),
		"say":             of(doSay),
		"spell":           of(doSpell),
		"repeat":          of(doRepeat, "steps"),
		"permission":      of(doPermission, "then_on", "meanwhile"),
		"run":             of(doRun, "tool"),
		"sleep_ms":        of(doSleep),
		"wait_file":       of(doWaitFile),
		"touch":           of(doTouch),
		"crash":           of(doCrash),
		"exit":            of(doExit),
		"stderr":          of(doStderr),
		"rubbish":         of(doRubbish),
		"big":             of(doBig),
		"burst":           of(doBurst),
		"dup_id":          of(doDupID),
		"reorder":         nested(doReorder),
		"unknown_update":  of(doUnknownUpdate),
		"unknown_request": of(doUnknownRequest),
		"hang":            of(doHang),
		"stop":            of(doStop, "usage"),
		"error":           of(doError),
	}
}

// of is a kind whose argument is a T.
func of[T any](do func(t *turn, arg T, s step) error, with ...string) kind {
	read := func(raw json.RawMessage) (arg T, err error) {
		err = json.Unmarshal(raw, &arg)
		return arg, err
	}
	return kind{
		check: func(raw json.RawMessage) error {
			_, err := read(raw)
			return err
		},
		do: func(t *turn, s step) error {
			arg, err := read(t.expand(s.arg))
			if err != nil {
				return fmt.Errorf("step %s: %w", s.word, err)
			}
			return do(t, arg, s)
		},
		with: with,
	}
}

// nested is a kind whose argument is steps; {{…}} is theirs.
func nested(do func(t *turn, steps []step) error) kind {
	k := of(func(*turn, []step, step) error { return nil })
	k.do = func(t *turn, s step) error {
		var steps []step
		if err := json.Unmarshal(s.arg, &steps); err != nil {
			return err
		}
		return do(t, steps)
	}
	return k
}

func doUpdate(t *turn, update json.RawMessage, _ step) error {
	t.update(update)
	return nil
}

func doSay(t *turn, text string, _ step) error {
	t.update(chunk(wire.AgentMessage, text))
	return nil
}

func doSpell(t *turn, text string, _ step) error {
	for _, r := range text {
		t.update(chunk(wire.AgentMessage, string(r)))
	}
	return nil
}

func doRepeat(t *turn, times int, s step) error {
	outer := t.n
	defer func() { t.n = outer }()
	for t.n = 1; t.n <= times; t.n++ {
		if err := t.do(s.steps); err != nil {
			return err
		}
	}
	return nil
}

// defaultOptions are those of opencode.
const defaultOptions = `[
	{"optionId":"once","name":"Allow once","kind":"allow_once"},
	{"optionId":"always","name":"Always allow","kind":"allow_always"},
	{"optionId":"reject","name":"Reject","kind":"reject_once"}]`

func doPermission(t *turn, params map[string]json.RawMessage, s step) error {
	params["sessionId"] = encoded(t.session)
	if params["options"] == nil {
		params["options"] = json.RawMessage(defaultOptions)
	}
	if params["toolCall"] == nil {
		params["toolCall"] = encoded(map[string]string{"toolCallId": t.nextCall(), "title": "Something"})
	}
	line, answer := t.a.request(wire.MethodRequestPermission, params)
	t.send(line)
	if err := t.do(s.meanwhile); err != nil {
		return err
	}
	waiting := t.ctx
	if s.thenOn[onCancelled] != nil {
		waiting = t.a.closed
	}
	m, err := await(waiting, answer)
	if err != nil {
		return err
	}
	outcome, option := outcomeOf(m, params["options"])
	t.a.log.add(entry{What: wasDone, Step: s.word, Text: strings.TrimSpace(outcome + " " + option)})
	if outcome == onCancelled {
		return t.doCancelled(s.thenOn[onCancelled])
	}
	return t.do(s.thenOn[outcome])
}

// outcomeOf is which branch an answer takes, and the option that was chosen.
func outcomeOf(m wire.Message, options json.RawMessage) (outcome, option string) {
	result, err := wire.Decode[wire.PermissionResult](m.Result)
	if err != nil || m.Err != nil || result.Outcome.Outcome != wire.OutcomeSelected {
		return onCancelled, ""
	}
	option = result.Outcome.OptionID
	offered, err := wire.Decode[[]wire.PermissionOption](options)
	i := slices.IndexFunc(offered, func(o wire.PermissionOption) bool { return o.OptionID == option })
	if err == nil && i >= 0 && strings.HasPrefix(offered[i].Kind, "allow") {
		return onAllow, option
	}
	return onReject, option
}

// doCancelled does steps though the turn was cancelled; it ends after them.
func (t *turn) doCancelled(steps []step) error {
	ctx := t.ctx
	t.ctx = t.a.closed
	err := t.do(steps)
	if t.ctx = ctx; err != nil {
		return err
	}
	return context.Cause(ctx)
}

// doRun runs a command in a session of its own, which a killed agent leaves behind.
func doRun(t *turn, script string, s step) error {
	id := t.callOf(script, s)
	t.update(encoded(toolChange(id, "in_progress", "")))
	out := &progress{t: t, id: id}
	cmd := exec.CommandContext(t.ctx, "sh", "-c", script)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what it has left in the background
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return err // it could not be started
	}
	code := cmd.ProcessState.ExitCode()
	t.a.log.add(entry{What: wasDone, Step: s.word, Exit: &code})
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	status := "completed"
	if code != 0 {
		status = "failed"
	}
	change := toolChange(id, status, out.text())
	change["rawOutput"] = map[string]any{"output": out.text(), "metadata": map[string]any{"exit": code}}
	t.update(encoded(change))
	return nil
}

// callOf is the id of a command's tool call, which is reported unless it was.
func (t *turn) callOf(script string, s step) (id string) {
	if s.tool != nil && json.Unmarshal(t.expand(s.tool), &id) == nil {
		return id
	}
	id = t.nextCall()
	t.update(encoded(map[string]any{
		"sessionUpdate": wire.NewToolCall, "toolCallId": id, "title": script, "kind": "execute", "status": "pending",
		"rawInput": map[string]string{"command": script},
	}))
	return id
}

// progress reports what a command has printed so far.
type progress struct {
	t   *turn
	id  string
	all bytes.Buffer
}

func (p *progress) Write(b []byte) (int, error) {
	p.all.Write(b)
	p.t.update(encoded(toolChange(p.id, "in_progress", p.text())))
	return len(b), nil
}

func (p *progress) text() string { return strings.ToValidUTF8(p.all.String(), "\ufffd") }

func doSleep(t *turn, ms int, _ step) error {
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	_, err := await(t.ctx, timer.C)
	return err
}

func doWaitFile(t *turn, path string, _ step) error { return awaitFile(t.ctx, path) }

func doTouch(t *turn, path string, s step) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	t.a.log.add(entry{What: wasDone, Step: s.word, Text: path})
	return f.Close()
}

func doCrash(*turn, bool, step) error {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	return errors.New("crash: still there")
}

func doExit(_ *turn, code int, _ step) error {
	os.Exit(code)
	return nil
}

func doStderr(_ *turn, text string, _ step) error {
	_, err := fmt.Fprintln(os.Stderr, text)
	return err
}

func doRubbish(t *turn, text string, _ step) error {
	t.send([]byte(text + "\n"))
	return nil
}

func doBig(t *turn, size int, _ step) error {
	frame := len(updateLine(t.session, chunk(wire.AgentMessage, ""))) - 1 // the line feed isn't counted
	t.update(chunk(wire.AgentMessage, strings.Repeat("x", max(size-frame, 0))))
	return nil
}

func doBurst(t *turn, n int, _ step) error {
	var lines []byte
	for i := range n {
		update := chunk(wire.AgentMessage, fmt.Sprintf("burst %d\n", i+1))
		t.a.state.remember(t.session, update)
		lines = append(lines, updateLine(t.session, update)...)
	}
	t.send(lines)
	return nil
}

func doDupID(t *turn, _ bool, _ step) error {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	t.a.nextID = max(t.a.nextID-1, 0)
	return nil
}

func doReorder(t *turn, steps []step) error {
	var held [][]byte
	outer := t.held
	t.held = &held
	err := t.do(steps)
	t.held = outer
	for _, line := range slices.Backward(held) {
		t.send(line)
	}
	return err
}

func doUnknownUpdate(t *turn, _ bool, _ step) error {
	t.update(json.RawMessage(`{"sessionUpdate":"fakeagent_novelty","payload":{"n":9007199254740993}}`))
	return nil
}

func doUnknownRequest(t *turn, method string, _ step) error {
	line, answer := t.a.request(method, map[string]string{"sessionId": t.session})
	t.send(line)
	_, err := await(t.ctx, answer)
	return err
}

func doHang(t *turn, _ bool, _ step) error {
	<-t.ctx.Done()
	return context.Cause(t.ctx)
}

func doStop(t *turn, reason string, s step) error {
	t.stop(reason, t.expand(s.usage))
	return nil
}

func doError(t *turn, e wire.Error, _ step) error {
	t.answer(errorLine(t.id, e), e.Error())
	return nil
}
