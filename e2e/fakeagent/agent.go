package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"
	"time"

	"holdfast/runner/acp/wire"
)

// agent is the process. One goroutine reads and answers all but prompts, which
// another works off.
type agent struct {
	script *script
	log    *logFile
	state  *state
	queue  chan *turn
	closed context.Context // ends when stdin has, unless that is ignored
	has    settings        // of the reader alone

	writing sync.Mutex // one write at a time

	mu      sync.Mutex
	nextID  int64
	waiting map[wire.ID]chan wire.Message // requests of ours
	turns   map[*turn]bool                // queued and running
	count   int                           // of turns so far
}

func newAgent(scriptFile, logPath, statePath string) (*agent, error) {
	s, err := loadScript(scriptFile)
	if err != nil {
		return nil, err
	}
	log, err := openLog(logPath)
	if err != nil {
		return nil, err
	}
	kept, err := openState(statePath)
	if err != nil {
		return nil, err
	}
	return &agent{
		script: s, log: log, state: kept, queue: make(chan *turn, 1000),
		waiting: map[wire.ID]chan wire.Message{}, turns: map[*turn]bool{}, has: maps.Clone(s.Session),
	}, nil
}

var errClosed = errors.New("stdin has ended")

// serve reads to the end of in. Then it ends what runs and waits for that, unless the
// script ignores the end.
func (a *agent) serve(ctx context.Context, in io.Reader) {
	ctx, end := context.WithCancelCause(ctx)
	a.closed = ctx
	a.log.add(entry{What: wasStarted})
	var worker sync.WaitGroup
	worker.Go(a.work)
	a.read(in)
	a.log.add(entry{What: wasClosed})
	if a.script.OnEOF == eofIgnore {
		for range time.NewTicker(time.Hour).C { // until it is killed
		}
	}
	end(errClosed)
	worker.Wait()
}

// work works off the turns.
func (a *agent) work() {
	for {
		select {
		case <-a.closed.Done():
			return
		case t := <-a.queue:
			t.run()
			a.mu.Lock()
			delete(a.turns, t)
			a.mu.Unlock()
		}
	}
}

func (a *agent) read(in io.Reader) {
	var lines wire.Lines
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		received, tooLong := lines.Feed(buf[:n])
		for _, line := range received {
			a.receive(line.Bytes)
		}
		if tooLong != nil {
			fail(tooLong)
		}
		if err != nil {
			return
		}
	}
}

// receive takes one line.
func (a *agent) receive(line []byte) {
	if json.Valid(line) {
		a.log.add(entry{What: wasReceived, Line: line})
	} else {
		a.log.add(entry{What: wasReceived, Text: string(line)})
	}
	m, err := wire.Parse(line)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "fakeagent: ignored:", err)
	case m.Kind == wire.KindRequest:
		a.answer(m)
	case m.Kind == wire.KindResponse:
		a.hand(m)
	case m.Method == wire.MethodSessionCancel:
		a.cancel(m)
	}
}

// answer answers a request, or lets a turn do it.
func (a *agent) answer(m wire.Message) {
	if fixed, ok := a.script.Answers[m.Method]; ok {
		switch {
		case fixed.AfterFile != "":
			if awaitFile(a.closed, fixed.AfterFile) == nil {
				a.usual(m)
			}
		case fixed.Hang:
		case fixed.Crash:
			fail(doCrash(nil, true, step{}))
		case fixed.Error != nil:
			a.write(errorLine(m.ID, *fixed.Error))
		default:
			a.result(m.ID, fixed.Result)
		}
		return
	}
	a.usual(m)
}

// usual answers as an agent does of which the script says nothing special.
func (a *agent) usual(m wire.Message) {
	offered := a.script.can.SessionCapabilities
	opens := m.Method == wire.MethodSessionNew || m.Method == wire.MethodSessionLoad || m.Method == wire.MethodSessionResume
	switch {
	case opens && a.script.NeedsEnv != "" && os.Getenv(a.script.NeedsEnv) == "":
		a.refuse(m, wire.CodeAuthRequired, a.script.NeedsEnv+" isn't set")
	case m.Method == wire.MethodInitialize:
		a.initialize(m)
	case m.Method == wire.MethodSessionNew:
		a.newSession(m)
	case m.Method == wire.MethodSessionLoad && a.script.can.LoadSession,
		m.Method == wire.MethodSessionResume && bool(offered.Resume):
		a.openSession(m)
	case m.Method == wire.MethodSessionPrompt:
		a.prompt(m)
	case m.Method == wire.MethodSetMode, m.Method == wire.MethodSetConfigOption, m.Method == wire.MethodSetModel:
		a.set(m)
	case m.Method == wire.MethodAuthenticate, m.Method == "session/close" && bool(offered.Close):
		a.result(m.ID, struct{}{})
	default:
		a.refuse(m, wire.CodeMethodNotFound, m.Method+" is not offered")
	}
}

func (a *agent) initialize(m wire.Message) {
	a.result(m.ID, map[string]any{
		"protocolVersion":   a.script.ProtocolVersion,
		"agentCapabilities": a.script.Capabilities,
		"authMethods":       a.script.AuthMethods,
		"agentInfo":         wire.Implementation{Name: "fakeagent", Version: "1"},
	})
}

func (a *agent) newSession(m wire.Message) {
	id := a.state.newSession()
	result := map[string]any{"sessionId": id}
	for name, value := range a.has {
		result[name] = value
	}
	a.result(m.ID, result)
	a.opened(id)
}

// openSession loads or resumes; to load is to tell the history again.
func (a *agent) openSession(m wire.Message) {
	p, err := wire.Decode[wire.SessionParams](m.Params)
	if err != nil {
		a.refuse(m, wire.CodeInvalidParams, err.Error())
		return
	}
	history, ok := a.state.history(p.SessionID)
	if !ok {
		a.refuse(m, wire.CodeNotFound, "no session "+p.SessionID)
		return
	}
	if m.Method == wire.MethodSessionLoad {
		for _, update := range history {
			a.write(updateLine(p.SessionID, update))
		}
	}
	a.result(m.ID, a.has) // null, if there is nothing to say
	a.opened(p.SessionID)
}

// opened has the steps done that follow the opening of a session.
func (a *agent) opened(session string) {
	if len(a.script.Opened) > 0 {
		a.enqueue(&turn{session: session, steps: a.script.Opened, on: a.script.OnCancel})
	}
}

func (a *agent) prompt(m wire.Message) {
	p, err := wire.Decode[wire.PromptParams](m.Params)
	if err != nil {
		a.refuse(m, wire.CodeInvalidParams, err.Error())
		return
	}
	if _, ok := a.state.history(p.SessionID); !ok {
		a.refuse(m, wire.CodeNotFound, "no session "+p.SessionID)
		return
	}
	t := &turn{session: p.SessionID, on: a.script.OnCancel, id: m.ID, unanswered: true}
	for _, block := range p.Prompt {
		if text, ok := block.(wire.TextBlock); ok {
			t.prompt += text.Text
		}
	}
	chosen := a.script.entryFor(t.prompt, a.state)
	t.steps = chosen.Steps
	if chosen.OnCancel != nil {
		t.on = *chosen.OnCancel
	}
	a.enqueue(t)
}

func (a *agent) enqueue(t *turn) {
	a.mu.Lock()
	a.count++
	t.a, t.number, t.running = a, a.count, map[string]bool{}
	t.ctx, t.cancel = context.WithCancelCause(a.closed)
	a.turns[t] = true
	a.mu.Unlock()
	a.queue <- t
}

// cancel ends the turns of a session, queued ones too.
func (a *agent) cancel(m wire.Message) {
	p, err := wire.Decode[wire.CancelParams](m.Params)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for t := range a.turns {
		if t.session == p.SessionID && t.on.mode != cancelIgnore {
			t.cancel(errCancelled)
		}
	}
}

// request makes a request of ours. The answer comes once, if it does.
func (a *agent) request(method string, params any) (line []byte, answer <-chan wire.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	line, err := wire.Request(a.nextID, method, params)
	if err != nil {
		fail(err)
	}
	c := make(chan wire.Message, 1)
	a.waiting[wire.NumberID(a.nextID)] = c
	a.nextID++
	return line, c
}

// hand gives an answer to whoever waits for it; one that nobody waits for is logged
// as received, and that is all.
func (a *agent) hand(m wire.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.waiting[m.ID]; ok {
		delete(a.waiting, m.ID)
		c <- m
	}
}

func (a *agent) result(id wire.ID, result any) {
	line, err := wire.Result(id, result)
	if err != nil {
		fail(err)
	}
	a.write(line)
}

func (a *agent) refuse(m wire.Message, code int, message string) {
	a.write(errorLine(m.ID, wire.Error{Code: code, Message: message}))
}

func (a *agent) write(line []byte) {
	a.writing.Lock()
	defer a.writing.Unlock()
	if _, err := os.Stdout.Write(line); err != nil {
		fail(err)
	}
}

// errorLine is ErrorAnswer with the error's data.
func errorLine(id wire.ID, e wire.Error) []byte {
	raw, err := json.Marshal(e)
	if err != nil {
		fail(err)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`+"\n", id, raw)
}

func updateLine(session string, update any) []byte {
	line, err := wire.Notify(wire.MethodSessionUpdate, map[string]any{"sessionId": session, "update": update})
	if err != nil {
		fail(err)
	}
	return line
}
