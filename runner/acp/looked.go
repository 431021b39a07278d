package acp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"holdfast/runner/acp/wire"
	"holdfast/runner/tool"
)

// Bounds of an agent that is only looked at.
const (
	lookedLine   = 16 << 20 // of one line that it writes
	lookedBytes  = 64 << 20 // of all that it writes
	lookedStrays = 10_000   // of lines that aren't ACP
	lookedAsks   = 100      // of its own requests, each of which is refused
	lookedGrace  = 2 * time.Second
	lookedNumber = 1 // its only dispatch
)

// What ends an agent that writes without end.
var (
	errFlood  = fmt.Errorf("it wrote more than %d MB", lookedBytes>>20)
	errStrays = fmt.Errorf("it wrote more than %d lines that aren't ACP", lookedStrays)
)

// looked is a process of an agent that is only looked at. Its output comes from
// another goroutine.
type looked struct {
	stdin *os.File
	last  int64         // id of the newest request
	stop  func()        // ends the process and all that it started
	ended chan struct{} // it has
	how   tool.Result   // read after ended

	mu       sync.Mutex
	lines    wire.Lines
	bytes    int64
	flood    error
	strays   int
	rubbish  string
	complain string
	wants    wire.ID
	answer   chan wire.Message // to the one that is wanted
	asked    chan wire.ID      // requests of its own, which are to be refused
}

// look starts a process of the agent. Who called it ends it with end.
func (a *Agent) look(ctx context.Context, dir string, extra []string) (*looked, error) {
	stdin, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the agent: %w", err)
	}
	l := &looked{
		stdin: write, ended: make(chan struct{}), lines: wire.Lines{Max: lookedLine},
		answer: make(chan wire.Message, 1), asked: make(chan wire.ID, lookedAsks),
	}
	cmd, err := tool.Prepare(tool.Spec{
		// A name of its own: what carries it is ended with it, and nothing else.
		CallID: "look_" + rand.Text(), N: lookedNumber, Interp: []string{"sh", "-eu"}, Script: script(a.o.Command), Dir: dir, Env: tool.WithEnv(a.o.Env, extra),
		Grace: lookedGrace, MaxOutput: 2 * lookedBytes, Stdin: stdin, Output: l.output, Secrets: a.secrets(extra),
	})
	_ = stdin.Close()
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go func() {
		defer close(l.ended)
		defer func() {
			if p := recover(); p != nil {
				l.how = tool.Result{Err: fmt.Errorf("panic while an agent was looked at: %v", p)}
			}
		}()
		l.how = cmd.Run(running)
	}()
	return l, nil
}

// end ends the process and all that it has started, and names what could not be ended.
func (l *looked) end() (left []int) {
	_ = l.stdin.Close()
	l.stop()
	<-l.ended
	return l.how.Survivors
}

// gone reports whether the process has ended.
func (l *looked) gone() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// leave sees whether the process ends when its stdin does.
func (l *looked) leave(ctx context.Context, within time.Duration) bool {
	_ = l.stdin.Close()
	patience := time.NewTimer(within)
	defer patience.Stop()
	select {
	case <-l.ended:
		return l.how.Reason == ""
	case <-ctx.Done():
	case <-patience.C:
	}
	return false
}

// wrote is what the process wrote that isn't ACP.
func (l *looked) wrote() (rubbish, complain string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rubbish, l.complain
}

// output takes what the process writes.
func (l *looked) output(pieces []tool.Piece) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, piece := range pieces {
		if l.bytes += int64(len(piece.Text)); l.bytes > lookedBytes {
			l.flood = errFlood
			return errFlood
		}
		if piece.Stream != "stdout" {
			l.complain = tail(l.complain + piece.Text)
			continue
		}
		lines, err := l.lines.Feed([]byte(piece.Text))
		for _, line := range lines {
			l.take(line.Bytes)
		}
		if l.strays > lookedStrays {
			l.flood = errStrays
			return errStrays
		}
		if err != nil {
			l.flood = fmt.Errorf("it wrote a line of more than %d MB", lookedLine>>20)
			return err
		}
	}
	return nil
}

func (l *looked) take(line []byte) {
	m, err := wire.Parse(line)
	switch {
	case err != nil:
		l.strays++
		l.rubbish = tail(l.rubbish + wire.Excerpt(line) + "\n")
	case m.Kind == wire.KindResponse && m.ID == l.wants:
		l.wants = wire.ID{}
		l.answer <- m // the one that is wanted, and there is room for one
	case m.Kind == wire.KindRequest:
		select {
		case l.asked <- m.ID:
		default: // it asks without end
		}
	}
}

// tell writes a notification.
func (l *looked) tell(method string, params any) error {
	frame, err := wire.Notify(method, params)
	if err != nil {
		return err
	}
	return l.write(frame)
}

func (l *looked) write(frame []byte) error {
	_ = l.stdin.SetWriteDeadline(time.Now().Add(tryWithin)) // it may not read
	if _, err := l.stdin.Write(frame); err != nil {
		return l.failed(errors.New("it reads nothing any more"))
	}
	return nil
}

// ask writes a request and waits for its answer. What the agent asks meanwhile is refused.
func (l *looked) ask(ctx context.Context, method string, params any) (wire.Message, error) {
	l.last++
	frame, err := wire.Request(l.last, method, params)
	if err != nil {
		return wire.Message{}, err
	}
	l.want(wire.NumberID(l.last))
	if err := l.write(frame); err != nil {
		return wire.Message{}, err
	}
	for {
		select {
		case m := <-l.answer:
			return m, nil
		case id := <-l.asked:
			if refusal, err := wire.ErrorAnswer(id, wire.CodeMethodNotFound, "Holdfast only looks at the agent"); err == nil {
				_ = l.write(refusal) // the next wait tells what is wrong
			}
		case <-l.ended:
			return wire.Message{}, l.failed(l.ending())
		case <-ctx.Done():
			return wire.Message{}, l.failed(context.Cause(ctx))
		}
	}
}

// want says which answer is waited for from now on.
func (l *looked) want(id wire.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select { // one that came too late for who wanted it
	case <-l.answer:
	default:
	}
	l.wants = id
}

// ending says how the process ended by itself.
func (l *looked) ending() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r := l.how; {
	case l.flood != nil:
		return l.flood
	case r.Signal != "":
		return fmt.Errorf("it was ended by %s", r.Signal)
	case r.ExitCode != nil:
		return fmt.Errorf("it has ended with exit code %d", *r.ExitCode)
	}
	return errors.New("it has ended")
}

// failed adds what the agent wrote, which mostly says why.
func (l *looked) failed(err error) error {
	rubbish, complain := l.wrote()
	for _, said := range []string{rubbish, complain} {
		if said = lastOf(said); said != "" {
			return fmt.Errorf("%w; it wrote: %s", err, said)
		}
	}
	return err
}

// lastOf is the end of a text on one line: that is where programs say what is wrong.
func lastOf(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= lastWords {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-lastWords:], "")
}
