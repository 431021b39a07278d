package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
	"holdfast/runner/tool"
)

// Probe is what an agent says of itself.
type Probe struct {
	Init     wire.InitializeResult
	InitTook time.Duration

	Session  wire.SessionState // of a session that nobody used
	Refused  *wire.Error       // why there is none
	OpenTook time.Duration

	Leaves   bool          // it ends by itself when its stdin does
	LeftIn   time.Duration // how soon
	Rubbish  string        // what it wrote to its standard output that isn't ACP
	Complain string        // the end of its standard error
}

// Probe starts the agent in a folder, has it open a session, and ends it: no model
// is asked for anything. extra are variables, as NAME=value, that it gets besides, and
// whose values are masked in all that is reported of it (OWN-3). The error says what
// stood in the way, with the agent's last words; what was learnt before is in the answer.
func (a *Agent) Probe(ctx context.Context, dir string, extra ...string) (Probe, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.o.OpenWithin, errLate)
	defer cancel()
	secrets := tool.SecretsFromEnv(a.o.Env, nil)
	for _, entry := range extra {
		_, value, _ := strings.Cut(entry, "=")
		secrets = append(secrets, journal.Forms(value)...)
	}
	p := prober{answers: make(chan wire.Message, 16), clean: journal.NewCleaner(secrets)}
	stdin, write, err := os.Pipe()
	if err != nil {
		return p.out, fmt.Errorf("make a pipe for the agent: %w", err)
	}
	defer func() { _ = write.Close() }()
	cmd, err := tool.Prepare(tool.Spec{
		CallID: "doctor", N: 1, Interp: []string{"sh", "-eu"}, Script: script(a.o.Command), Dir: dir, Env: tool.WithEnv(a.o.Env, extra),
		MaxOutput: 1 << 30, Stdin: stdin, Output: p.output, Secrets: secrets,
	})
	_ = stdin.Close()
	if err != nil {
		return p.out, err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan tool.Result, 1)
	go func() {
		defer close(ended)
		ended <- cmd.Run(running)
	}()
	err = p.talk(ctx, a, write, dir, ended)
	_ = write.Close()
	p.leave(a.o.ExitWithin, ended)
	end()
	<-ended
	return p.result(), err
}

// prober is one Probe. Its output comes from another goroutine.
type prober struct {
	mu      sync.Mutex
	lines   wire.Lines
	out     Probe
	answers chan wire.Message
	clean   *journal.Cleaner
}

func (p *prober) result() Probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

func (p *prober) output(pieces []tool.Piece) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, piece := range pieces {
		if piece.Stream != "stdout" {
			p.out.Complain = tail(p.out.Complain + piece.Text)
			continue
		}
		lines, err := p.lines.Feed([]byte(piece.Text))
		for _, l := range lines {
			if b, cerr := p.clean.JSON(l.Bytes); cerr == nil { // in whatever escapes
				l.Bytes = b
			}
			m, perr := wire.Parse(l.Bytes)
			if perr != nil {
				p.out.Rubbish = tail(p.out.Rubbish + wire.Excerpt(l.Bytes) + "\n")
				continue
			}
			if m.Kind == wire.KindResponse && len(p.answers) < cap(p.answers) {
				p.answers <- m
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *prober) talk(ctx context.Context, a *Agent, w *os.File, dir string, ended <-chan tool.Result) error {
	first, err := a.initialize()
	if err != nil {
		return err
	}
	started := time.Now()
	m, err := p.ask(ctx, w, first, wire.NumberID(1), ended)
	if err != nil {
		return err
	}
	if m.Err != nil {
		return fmt.Errorf("it could not begin: %s", words(m.Err))
	}
	p.out.InitTook = time.Since(started)
	if p.out.Init, err = wire.Decode[wire.InitializeResult](m.Result); err != nil {
		return fmt.Errorf("its first answer can't be read: %w", err)
	}
	open, err := wire.Request(2, wire.MethodSessionNew, wire.SessionParams{Cwd: dir})
	if err != nil {
		return err
	}
	started = time.Now()
	if m, err = p.ask(ctx, w, open, wire.NumberID(2), ended); err != nil {
		return err
	}
	p.out.OpenTook, p.out.Refused = time.Since(started), m.Err
	if m.Err == nil {
		p.out.Session, err = wire.Decode[wire.SessionState](m.Result)
	}
	return err
}

// ask writes a request and waits for its answer.
func (p *prober) ask(ctx context.Context, w *os.File, frame []byte, id wire.ID, ended <-chan tool.Result) (wire.Message, error) {
	if _, err := w.Write(frame); err != nil {
		return wire.Message{}, p.failed(errors.New("it has ended"))
	}
	for {
		select {
		case m := <-p.answers:
			if m.ID == id {
				return m, nil
			}
		case <-ended:
			return wire.Message{}, p.failed(errors.New("it has ended"))
		case <-ctx.Done():
			return wire.Message{}, p.failed(context.Cause(ctx))
		}
	}
}

// failed adds what the agent wrote, which mostly says why.
func (p *prober) failed(err error) error {
	out := p.result()
	for _, said := range []string{out.Rubbish, out.Complain} {
		if said = strings.TrimSpace(said); said != "" {
			return fmt.Errorf("%w; it wrote: %s", err, said)
		}
	}
	return err
}

// leave sees whether the agent ends when its stdin does.
func (p *prober) leave(within time.Duration, ended <-chan tool.Result) {
	started := time.Now()
	select {
	case <-ended:
		p.out.Leaves, p.out.LeftIn = true, time.Since(started)
	case <-time.After(within):
	}
}
