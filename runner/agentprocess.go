package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
)

// wholeOutput keeps all that an agent's process writes: it is a protocol, of which
// no middle may be lost.
const wholeOutput = 1 << 50

// ProcessSpec says how an agent's process is started.
type ProcessSpec struct {
	Script string         // for sh; no secret stands in it
	Env    []string       // complete
	Shape  *journal.Shape // of what it writes; nil: it writes no JSON
}

// Process is the process of a session's agent, which outlives turns and servers. Its
// agent reads what it writes and commits what that means, and tells it things, both
// each exactly once. It is for the goroutine of its turn.
type Process struct {
	t     *Turn
	id    shim.ID
	child *shim.Child

	readTo, skip, sent, logged int64
	trimmed                    int64 // up to where the spool's room was given back here
	unsent                     []store.AgentFrame
	asks                       []store.AgentAsk
	tried, missed              int64      // frames up to tried may have been given earlier; those from missed on were not given
	letGo                      func()     // its name, which a sweep would else clear away
	muted                      bool       // what it says can't be masked, and is read by nobody
	exit                       *shim.Exit // of a muted one

	heard chan Heard
	stop  context.CancelCauseFunc
	wg    sync.WaitGroup
}

// Heard is what an agent's process wrote, or how it ended.
type Heard struct {
	Pieces []tool.Piece
	Next   int64 // of the spool, behind them
	Ended  bool  // there is no more to hear
	Exit   *shim.Exit
	Err    error // with Ended: nobody recorded how
	Muted  bool  // with Ended: what it said last can't be masked, and is left out
}

// processName is the name under which an agent's process is kept by its shim.
func processName(processID string) shim.ID { return shim.ID{CallID: processID, N: 1} }

// Process gives the process of this session's agent: the one that runs, also if
// another execution started it, or else a new one, which is told first. Whoever asked
// closes it.
func (t *Turn) Process(ctx context.Context, spec ProcessSpec, first [][]byte) (*Process, error) {
	if was := t.fold.State.Process; was != nil {
		if p, err := t.rejoinProcess(ctx, was); p != nil || err != nil {
			return p, err
		}
	}
	return t.startProcess(ctx, spec, first)
}

// causeOr tells why ctx has ended, or of err if it hasn't.
func causeOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// rejoinProcess follows the process that the journal knows of. nil: it is another
// host's, or it has ended and nobody waits for what it said; then its end is journalled.
func (t *Turn) rejoinProcess(ctx context.Context, was *journal.AgentProcess) (*Process, error) {
	id := processName(was.ID)
	letGo, err := t.r.occupied.take(ctx, id.String())
	if err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept {
			letGo()
		}
	}()
	row, err := t.r.store.AgentProcess(context.WithoutCancel(ctx), was.ID)
	if err != nil && !journal.Is(err, journal.NotFound) {
		return nil, err
	}
	ended := endedBy(was.ID, nil)
	if err == nil && was.Folder == t.r.o.StateFolderID {
		found, err := t.r.o.Shims.Bury(id)
		if err != nil {
			return nil, err
		}
		inFlight := len(t.fold.State.Attempts) > 0
		muted, err := t.mute(ctx, was, &found)
		if err != nil {
			return nil, err
		}
		p := &Process{t: t, id: id, muted: muted, exit: found.Exit, readTo: row.ReadTo, skip: row.Skip, sent: row.Sent, tried: row.Sent, unsent: row.Frames, asks: row.Asks, letGo: letGo}
		if !muted && (found.Running || (found.Exit != nil && inFlight)) {
			if p.child, err = t.r.o.Shims.Attach(ctx, id); err != nil && !errors.Is(err, shim.ErrLost) {
				return nil, causeOr(ctx, fmt.Errorf("rejoin the agent's process: %w", err))
			}
		}
		// Also of one that is gone: what it wrote before is read first.
		if p.child != nil || inFlight {
			kept = true
			p.follow()
			return p, nil
		}
		ended = endedBy(was.ID, found.Exit)
	}
	return nil, t.append(ctx, store.Append{Drafts: []journal.Draft{draft(journal.Server(), ended)}})
}

// endedBy is the fact of how a process ended, as its record has it; nil: there is none.
func endedBy(processID string, e *shim.Exit) *journal.AgentEnded {
	b := &journal.AgentEnded{ProcessID: processID}
	if e != nil {
		b.ExitCode, b.Signal, b.Reason = e.ExitCode, e.Signal, e.Reason
	}
	return b
}

// startProcess starts one. Its facts are committed before it begins, with what it is told first.
func (t *Turn) startProcess(ctx context.Context, spec ProcessSpec, first [][]byte) (*Process, error) {
	if err := t.run.trust.wait(t.run.ctx); err != nil {
		return nil, err
	}
	given, err := t.credentials(ctx)
	if err != nil {
		return nil, err
	}
	id := processName(store.NewID("prc"))
	o := &t.r.o
	letGo, err := t.r.occupied.take(ctx, id.String()) // a sweep must not take it for one that was never committed
	if err != nil {
		return nil, err
	}
	child, err := o.Shims.Prepare(ctx, shim.Spec{
		Spec: tool.Spec{
			CallID: id.CallID, N: id.N, Interp: []string{"sh", "-eu"}, Script: spec.Script, Dir: t.fold.State.Workspace, Env: tool.WithEnv(spec.Env, given.Env),
			MaxOutput: wholeOutput, Secrets: spec.masks(slices.Concat(o.Secrets, given.Secrets)), Vital: true,
		},
		Stdin: true, Orphan: o.Orphan,
	})
	if err != nil {
		letGo()
		return nil, causeOr(ctx, fmt.Errorf("start the agent's process: %w", err))
	}
	facts := journal.Process(child.Process())
	started := &journal.AgentStarted{ProcessID: id.CallID, StateFolderID: o.StateFolderID, Process: &facts}
	for i, name := range given.Names {
		started.Credentials = append(started.Credentials, journal.CredentialUse{Name: name, ID: given.IDs[i]})
	}
	p := &Process{t: t, id: id, child: child, letGo: letGo}
	err = p.commit(ctx, store.Append{
		Drafts: []journal.Draft{draft(journal.Server(), started)},
	}, store.AgentIO{Begins: o.StateFolderID, Frames: first})
	if err != nil {
		child.Abandon()
		p.Close()
		return nil, err
	}
	store.Crash("agent.before_run")
	if err := child.Go(); err != nil { // whether it has begun, its record tells
		t.r.log.Warn("start an agent", slog.String("session", t.run.session), slog.Any("error", err))
	}
	t.noteUse(ctx, given)
	p.follow()
	if err := p.deliver(ctx); err != nil { // it is there all the same, and told by whoever comes
		p.Close()
		return nil, err
	}
	return p, nil
}

// ID names the process in the journal.
func (p *Process) ID() string { return p.id.CallID }

// At tells from where on what is heard is new: bytes of the standard output behind
// what was committed. The first that is heard may begin before.
func (p *Process) At() (readTo, skip int64) { return p.readTo, p.skip }

// Ended is the fact of how the process ended, as was heard; nil: nobody saw it.
func (p *Process) Ended(h *Heard) *journal.AgentEnded {
	if h == nil {
		return endedBy(p.id.CallID, nil)
	}
	return endedBy(p.id.CallID, h.Exit)
}

// Missed reports that a frame surely did not reach the process: it had ended
// before, and nobody has tried to give it earlier.
func (p *Process) Missed(n int64) bool { return p.missed > 0 && n >= p.missed }

// Told is how many frames the process was given, by whichever server.
func (p *Process) Told() int64 { return p.sent }

// Heard gives what the process writes, in order. One that is not taken keeps the
// process waiting on its pipe, once its spool is read.
func (p *Process) Heard() <-chan Heard { return p.heard }

// follow reads the spool on, in a goroutine that close waits for.
func (p *Process) follow() {
	p.heard = make(chan Heard)
	ctx, stop := context.WithCancelCause(context.WithoutCancel(p.t.run.ctx))
	p.stop = stop
	from := p.readTo // which goes on while it is read
	p.t.r.spawn(&p.wg, "hear "+p.id.CallID, func() { p.hear(ctx, from) })
}

func (p *Process) hear(ctx context.Context, at int64) {
	defer close(p.heard)
	if p.muted {
		p.hearEnd(ctx)
		return
	}
	tell := func(h Heard) error {
		select {
		case p.heard <- h:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	deliver := func(pieces []tool.Piece, next int64) error { return tell(Heard{Pieces: pieces, Next: next}) }
	var exit shim.Exit
	err := shim.ErrLost
	for {
		on := func(pieces []tool.Piece, next int64) error {
			err := deliver(pieces, next)
			if err == nil {
				at = next
			}
			return err
		}
		if p.child == nil {
			if rerr := p.t.r.o.Shims.Read(ctx, p.id, at, on); rerr != nil {
				err = rerr
			}
			break
		}
		if exit, err = p.child.Follow(ctx, at, on); err == nil || errors.Is(err, shim.ErrLost) || ctx.Err() != nil {
			break
		}
		p.t.r.log.Warn("follow an agent", slog.String("process", p.id.CallID), slog.Any("error", err)) // no descriptors left, say
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
	h := Heard{Ended: true, Err: err}
	if err == nil {
		h.Exit = &exit
	}
	_ = tell(h) // nobody listens any more, if it can't
}

// hearEnd gives how a muted process ended, and nothing that it said.
func (p *Process) hearEnd(ctx context.Context) {
	h := Heard{Ended: true, Exit: p.exit, Muted: true}
	if h.Exit == nil {
		h.Err = shim.ErrLost
	}
	select {
	case p.heard <- h:
	case <-ctx.Done():
	}
}

// Close lets go of the process, which goes on.
func (p *Process) Close() {
	if p.stop != nil {
		p.stop(errDetached)
		p.wg.Wait()
	}
	if p.child != nil {
		p.t.r.closeChild(p.child)
	}
	p.letGo()
}

// Commit journals what was read up to a place, with what follows from it, and what
// the process is to be told because of it: all or nothing. It is told afterwards,
// and again by whoever comes if that fails.
func (p *Process) Commit(ctx context.Context, a Commit) error {
	was := [2]int64{p.readTo, p.skip}
	p.readTo, p.skip = a.ReadTo, a.Skip
	io := store.AgentIO{Frames: a.Frames, Asks: a.Asks, Answered: a.Answered}
	err := p.commit(ctx, store.Append{Drafts: a.Drafts, Phase: a.Phase, RulesVersion: a.RulesVersion}, io)
	if err != nil {
		p.readTo, p.skip = was[0], was[1]
		if errors.Is(err, store.ErrInterrupted) {
			return ErrInterrupted
		}
		return err
	}
	p.asks = append(p.asks, a.Asks...)
	p.asks = slices.DeleteFunc(p.asks, func(a2 Ask) bool { return slices.Contains(a.Answered, a2.N) })
	store.Crash("agent.committed")
	p.trim()
	return p.deliver(ctx)
}

// trimEvery is how much of a spool is read before its room is given back.
const trimEvery = 4 << 20

// trim gives back the room of what is in the journal: an agent may talk for days.
func (p *Process) trim() {
	if p.readTo-p.trimmed < trimEvery {
		return
	}
	p.trimmed = p.readTo
	if err := p.t.r.o.Shims.Trim(p.id, p.readTo); err != nil {
		p.t.r.log.Debug("give back the room of what an agent said", slog.String("process", p.id.CallID), slog.Any("error", err))
	}
}

// Commit is what an agent has made of what it heard.
type Commit struct {
	Drafts       []journal.Draft
	ReadTo, Skip int64
	Frames       [][]byte // what the process is told
	Asks         []Ask    // what it asked, and the frames don't answer
	Answered     []int64  // what they do
	Phase        journal.Phase
	RulesVersion int64
}

// Ask is a request of the process that waits for its answer, also over restarts.
type Ask = store.AgentAsk

// Asks gives those that have no answer, in order.
func (p *Process) Asks() []Ask { return slices.Clone(p.asks) }

func (p *Process) commit(ctx context.Context, a store.Append, io store.AgentIO) error {
	io.ProcessID, io.ReadTo, io.Skip, io.Sent, io.Logged = p.id.CallID, p.readTo, p.skip, p.sent, p.logged
	a.Agent = &io
	if err := p.t.append(ctx, a); err != nil {
		return err
	}
	for _, data := range io.Frames {
		p.sent++
		p.unsent = append(p.unsent, store.AgentFrame{N: p.sent, Data: data})
	}
	return nil
}

// deliver gives the process what it was not told, as far as is known. One that has
// ended hears nothing: its end is heard.
func (p *Process) deliver(ctx context.Context) error {
	for len(p.unsent) > 0 {
		if p.child == nil {
			return nil
		}
		if err := p.t.run.trust.wait(p.t.run.ctx); errors.Is(err, ErrLeaseLost) {
			return err // whoever has the session now tells it
		}
		f := p.unsent[0]
		err := p.child.Write(ctx, f.N, f.Data)
		if errors.Is(err, shim.ErrEnded) {
			// Only the shim's own word tells that it didn't take it: one that was killed may have.
			if p.missed == 0 && f.N > p.tried && shim.Refused(err) {
				p.missed = f.N
			}
			return nil
		}
		p.tried = max(p.tried, f.N)
		if err != nil {
			return causeOr(ctx, fmt.Errorf("tell the agent's process %s: %w", p.id.CallID, err))
		}
		store.Crash("agent.told")
		p.logged = f.N
		p.unsent = p.unsent[1:]
	}
	return nil
}

// Resend gives the process what an earlier server may not have told it.
func (p *Process) Resend(ctx context.Context) error { return p.deliver(ctx) }

// CloseStdin ends what the process is told: it is about to be ended.
func (p *Process) CloseStdin(ctx context.Context) {
	if p.child == nil {
		return
	}
	if err := p.child.CloseStdin(ctx, p.sent+1); err != nil && !errors.Is(err, shim.ErrEnded) {
		p.t.r.log.Debug("close the stdin of an agent", slog.String("process", p.id.CallID), slog.Any("error", err))
	}
}

// strayGrace is how long what an agent has left behind has from TERM to KILL.
const strayGrace = time.Second

// EndStrays ends what the process's commands have left behind since it was told a
// frame; the process goes on. What can't be ended is logged.
func (p *Process) EndStrays(ctx context.Context, frame int64) {
	if p.child == nil {
		return
	}
	if err := p.child.EndStrays(ctx, frame, strayGrace); err != nil {
		p.t.r.log.Error("end what an agent has left behind", slog.String("process", p.id.CallID), slog.Any("error", err))
	}
}

// End asks for the end of the process and of all that it has started.
func (p *Process) End(reason string) {
	if p.child == nil {
		return
	}
	if err := p.child.End(reason, 0); err != nil {
		p.t.r.log.Error("end an agent", slog.String("process", p.id.CallID), slog.String("reason", reason), slog.Any("error", err))
	}
}
