package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/runner/acp/wire"
)

// turn does the steps of one prompt, or those after a session was opened.
type turn struct {
	a       *agent
	session string
	prompt  string
	steps   []step
	on      onCancel
	number  int
	ctx     context.Context
	cancel  context.CancelCauseFunc

	id         wire.ID // of the prompt
	unanswered bool    // and it is to be answered
	n          int     // of the innermost repeat
	calls      int
	running    map[string]bool // tool calls that were reported, and not their end
	held       *[][]byte       // what reorder holds back
}

var errCancelled = errors.New("session/cancel")

func (t *turn) run() {
	defer t.cancel(nil)
	if t.unanswered {
		t.a.state.remember(t.session, chunk(wire.UserMessage, t.prompt))
	}
	err := t.do(t.steps)
	switch {
	case errors.Is(err, errCancelled):
		t.endCancelled()
	case errors.Is(err, errClosed):
		return
	case err != nil:
		fail(err)
	}
	t.stop(wire.StopEndTurn, nil)
}

// do does steps until one fails, or the turn's end is wanted.
func (t *turn) do(steps []step) error {
	for _, s := range steps {
		if t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		t.a.log.add(entry{What: wasBegun, Step: s.word, Arg: t.expand(s.arg)})
		if err := kinds[s.word].do(t, s); err != nil {
			return err
		}
	}
	return nil
}

// endCancelled is the end of a turn that was cancelled, as the script has it.
func (t *turn) endCancelled() {
	switch t.on.mode {
	case cancelComplete:
		for _, id := range slices.Sorted(maps.Keys(t.running)) {
			t.update(encoded(toolChange(id, "completed", "User aborted the command")))
		}
	case cancelFile:
		if awaitFile(t.a.closed, t.on.file) != nil {
			return
		}
	}
	t.stop(wire.StopCancelled, nil)
}

// stop answers the prompt, once.
func (t *turn) stop(reason string, usage json.RawMessage) {
	result := map[string]any{"stopReason": reason}
	if len(usage) > 0 {
		result["usage"] = usage
	}
	line, err := wire.Result(t.id, result)
	if err != nil {
		fail(err)
	}
	t.answer(line, reason)
}

func (t *turn) answer(line []byte, text string) {
	if !t.unanswered {
		return
	}
	t.unanswered = false
	t.a.log.add(entry{What: wasAnswered, Text: text})
	t.send(line)
}

// update sends an update, which the session's history has from now on.
func (t *turn) update(update json.RawMessage) {
	t.a.state.remember(t.session, update)
	t.track(update)
	t.send(updateLine(t.session, update))
}

// track keeps which tool calls run.
func (t *turn) track(update json.RawMessage) {
	u, err := wire.Decode[wire.Update](update)
	call, ok := u.(wire.ToolCall)
	if err != nil || !ok {
		return
	}
	if call.Status != nil && slices.Contains([]string{"completed", "failed"}, *call.Status) {
		delete(t.running, call.ToolCallID)
	} else {
		t.running[call.ToolCallID] = true
	}
}

// send writes a line, or holds it back.
func (t *turn) send(line []byte) {
	if t.held != nil {
		*t.held = append(*t.held, line)
		return
	}
	t.a.write(line)
}

// expand puts the values for {{…}} into the texts of JSON.
func (t *turn) expand(raw json.RawMessage) json.RawMessage {
	quoted := encoded(t.prompt)
	text := strings.NewReplacer(
		"{{prompt}}", string(quoted[1:len(quoted)-1]), "{{session}}", t.session,
		"{{turn}}", strconv.Itoa(t.number), "{{n}}", strconv.Itoa(t.n),
	).Replace(string(raw))
	return json.RawMessage(ofEnviron.ReplaceAllStringFunc(text, func(word string) string {
		m := ofEnviron.FindStringSubmatch(word)
		value := os.Getenv(m[2])
		if m[1] == "env" {
			quoted := encoded(value)
			return string(quoted[1 : len(quoted)-1])
		}
		var out strings.Builder
		for i := range len(value) {
			fmt.Fprintf(&out, `\u%04x`, value[i])
		}
		return out.String()
	}))
}

// ofEnviron finds variables of the environment in a text.
var ofEnviron = regexp.MustCompile(`\{\{(env|escaped)\.([A-Za-z0-9_]+)\}\}`)

// nextCall is an id for a tool call.
func (t *turn) nextCall() string {
	t.calls++
	return fmt.Sprintf("call_%d_%d", t.number, t.calls)
}

// await waits for a signal, a tick or the turn's end.
func await[T any](ctx context.Context, c <-chan T) (T, error) {
	select {
	case v := <-c:
		return v, nil
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// filePoll is how often a file is looked for.
const filePoll = 5 * time.Millisecond

// awaitFile waits until there is a file.
func awaitFile(ctx context.Context, path string) error {
	tick := time.NewTicker(filePoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if _, err := await(ctx, tick.C); err != nil {
			return err
		}
	}
}

func chunk(kind, text string) json.RawMessage {
	return encoded(map[string]any{"sessionUpdate": kind, "content": wire.TextBlock{Text: text}})
}

// toolChange is news about a tool call: its status, and what it shows, unless empty.
func toolChange(id, status, text string) map[string]any {
	change := map[string]any{"sessionUpdate": wire.ToolCallChange, "toolCallId": id, "status": status}
	if text != "" {
		change["content"] = []any{map[string]any{"type": "content", "content": wire.TextBlock{Text: text}}}
	}
	return change
}

func encoded(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		fail(err)
	}
	return raw
}
