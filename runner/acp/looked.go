package acp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
)

// Bounds of an agent that is only looked at.
const (
	lookedLine   = 16 << 20 // of one line that it writes
	lookedBytes  = 64 << 20 // of all that it writes
	lookedStrays = 10_000   // of lines that aren't ACP
	lookedAsks   = 100      // of its own requests, each of which is refused
	lookedGrace  = 2 * time.Second
	lookedNumber = 1                // its only dispatch
	lookedOrphan = time.Second      // of one whose looker was killed
	lookedEnd    = 30 * time.Second // until a shim has recorded the end that it was asked for
)

// Why one is ended.
const reasonLooked = "it was looked at"

// What ends an agent that writes without end.
var (
	errFlood  = fmt.Errorf("it wrote more than %d MB", lookedBytes>>20)
	errStrays = fmt.Errorf("it wrote more than %d lines that aren't ACP", lookedStrays)
)

// looked is a process of an agent that is only looked at. It has a shim, as all agents:
// so all that it starts is found and ended, also if the looker is killed. Its output
// comes from another goroutine.
type looked struct {
	child  *shim.Child
	clean  *journal.Cleaner // of the secrets that it was given
	last   int64            // id of the newest request
	frames int64            // that it was given
	stop   func()           // ends the process and all that it started
	ended  chan struct{}    // it has
	how    shim.Exit        // read after ended
	err    error            // nobody saw how; read after ended

	mu       sync.Mutex
	lines    wire.Lines
	bytes    int64
	flood    error
	strays   int
	rubbish  string
	complain journal.LastWords
	wants    wire.ID
	answer   chan wire.Message // to the one that is wanted
	asked    chan wire.ID      // requests of its own, which are to be refused
}

// look starts a process of the agent. Who called it ends it with end.
func (a *Agent) look(ctx context.Context, dir string, extra []string) (*looked, error) {
	dropLeft()
	folder, err := os.MkdirTemp("", lookedFolder+"*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the agent's output: %w", err)
	}
	root, err := shim.Open(folder)
	if err != nil {
		_ = os.Remove(folder)
		return nil, err
	}
	root.Close() // it keeps no shim ready
	drop := func() { _ = os.RemoveAll(folder) }
	child, err := root.Prepare(ctx, shim.Spec{
		Spec: tool.Spec{
			// A name of its own: what carries it is ended with it, and nothing else.
			CallID: "look_" + rand.Text(), N: lookedNumber, Interp: []string{"sh", "-eu"}, Script: script(a.o.Command), Dir: dir, Env: tool.WithEnv(a.o.Env, extra),
			Grace: lookedGrace, MaxOutput: 2 * lookedBytes, Secrets: a.secrets(extra), JSON: true,
		},
		Stdin: true, Orphan: lookedOrphan,
	})
	if err != nil {
		drop()
		return nil, err
	}
	_ = child.Go() // Follow tells whether it has begun
	l := &looked{
		child: child, clean: a.cleaner(extra), complain: journal.LastWords{Most: lastWords}, ended: make(chan struct{}), lines: wire.Lines{Max: lookedLine},
		answer: make(chan wire.Message, 1), asked: make(chan wire.ID, lookedAsks),
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go func() {
		defer close(l.ended)
		defer func() {
			if l.err == nil || errors.Is(l.err, shim.ErrLost) { // else its shim is there still
				drop()
			}
		}()
		defer func() {
			if p := recover(); p != nil {
				l.err = fmt.Errorf("panic while an agent was looked at: %v", p)
			}
		}()
		l.follow(running)
	}()
	return l, nil
}

// lookedFolder is how the folders of looks begin. Those that killed lookers have left are
// known by their age.
const lookedFolder, lookedAge = "holdfast-look-", time.Hour

func dropLeft() {
	list, _ := filepath.Glob(filepath.Join(os.TempDir(), lookedFolder+"*"))
	for _, path := range list {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && time.Since(info.ModTime()) > lookedAge {
			_ = os.RemoveAll(path) // another user's can't be
		}
	}
}

// follow hears the process until it has ended, and ends it if it isn't to go on.
func (l *looked) follow(ctx context.Context) {
	if l.how, l.err = l.child.Follow(ctx, 0, func(pieces []tool.Piece, _ int64) error { return l.output(pieces) }); l.err != nil && !errors.Is(l.err, shim.ErrLost) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookedEnd)
		defer cancel()
		_ = l.child.End(reasonLooked, 0) //nolint:contextcheck // it has a bound of its own; Await tells whether it has ended
		l.how, l.err = l.child.Await(ctx)
	}
	if errors.Is(l.err, shim.ErrLost) { // its shim was killed, and its shell with that: what else there is of it isn't
		_, _ = tool.KillCall(context.WithoutCancel(ctx), l.child.ID().CallID, lookedNumber, l.child.Process(), lookedGrace)
	}
	if l.err == nil {
		l.child.Reap()
	}
	_ = l.child.Close()
}

// end ends the process and all that it has started, and names what could not be ended.
func (l *looked) end() (left []int) {
	l.stop()
	<-l.ended
	return l.how.Survivors
}

// eof ends its stdin.
func (l *looked) eof(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	_ = l.child.CloseStdin(ctx, l.frames+1) // one that has ended has none
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
	l.eof(ctx)
	patience := time.NewTimer(within)
	defer patience.Stop()
	select {
	case <-l.ended:
		return l.err == nil && l.how.Reason == ""
	case <-ctx.Done():
	case <-patience.C:
	}
	return false
}

// wrote is what the process wrote that isn't ACP.
func (l *looked) wrote() (rubbish, complain string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rubbish, l.complain.Text(l.clean, colourless)
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
			l.complain.Add(l.clean, piece.Text)
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
	line = l.clean.Line(wire.Kept(line), shape)
	m, err := wire.Parse(line)
	switch {
	case err != nil:
		l.strays++
		l.rubbish = tail(l.rubbish + wire.Excerpt(line) + "\n")
	case m.Kind == wire.KindResponse && m.ID == l.wants:
		l.wants = wire.ID{}
		l.answer <- m // the one that is wanted, and there is room for one
	case m.Kind == wire.KindRequest && untold(m.ID.String()) == "":
		select {
		case l.asked <- m.ID:
		default: // it asks without end
		}
	}
}

// tell writes a notification.
func (l *looked) tell(ctx context.Context, method string, params any) error {
	frame, err := wire.Notify(method, params)
	if err != nil {
		return err
	}
	return l.write(ctx, frame)
}

func (l *looked) write(ctx context.Context, frame []byte) error {
	brief, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	err := l.child.Write(brief, l.frames+1, frame)
	switch {
	case err == nil:
		l.frames++
		return nil
	case errors.Is(err, shim.ErrEnded): // how, is told by who waits for its answer
		return nil
	case ctx.Err() != nil:
		return l.failed(context.Cause(ctx))
	}
	return l.failed(fmt.Errorf("it can't be told anything: %w", err))
}

// ask writes a request and waits for its answer. What the agent asks meanwhile is refused.
func (l *looked) ask(ctx context.Context, method string, params any) (wire.Message, error) {
	l.last++
	frame, err := wire.Request(l.last, method, params)
	if err != nil {
		return wire.Message{}, err
	}
	l.want(wire.NumberID(l.last))
	if err := l.write(ctx, frame); err != nil {
		return wire.Message{}, err
	}
	for {
		select {
		case m := <-l.answer:
			return m, nil
		case id := <-l.asked:
			if refusal, err := wire.ErrorAnswer(id, wire.CodeMethodNotFound, "Holdfast only looks at the agent"); err == nil {
				_ = l.write(ctx, refusal) // the next wait tells what is wrong
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
			return fmt.Errorf("%w; it wrote: %s", err, journal.Quote(said, 2*lastWords))
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
