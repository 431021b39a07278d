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

// mostUnread is how much an agent's process may write that nobody reads, as of one that
// rests: then it waits on its pipe. A flood fills no disk. It is more than the longest line
// that is read (wire.MaxLine), with the heads of its frames.
const mostUnread = 256 << 20

// ProcessSpec says how an agent's process is started.
type ProcessSpec struct {
	Script string         // for sh; no secret stands in it
	Env    []string       // complete
	Shape  *journal.Shape // of what it writes; nil: it writes no JSON

	// May waits until a new one may be started, or tells why none is; nil: it may.
	May func(context.Context) error
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
	shut  chan int64
	mute  mute
	stays chan struct{}
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

// Await waits for the end of the process, and gives it without what was written before:
// it waits for no reader, and reads nothing. False: it hasn't ended while ctx lasts.
func (p *Process) Await(ctx context.Context) (Heard, bool) {
	h := Heard{Ended: true, Exit: p.exit, Err: shim.ErrLost, Muted: p.muted}
	if p.child != nil {
		exit, err := p.child.Await(ctx)
		if err != nil && !errors.Is(err, shim.ErrLost) {
			return Heard{}, false
		}
		if h = (Heard{Ended: true, Err: err}); err == nil {
			h.Exit = &exit
		}
	}
	if h.Exit == nil && p.t.r.endLost(ctx, p.t.run.session, p.id.CallID) != nil {
		return Heard{}, false
	}
	return h, true
}

// Kill ends the process itself, as a shim that somebody has stopped doesn't, with all that
// it has started. False: it may still run, and nothing is to be concluded of it (LEA-12).
func (p *Process) Kill(ctx context.Context) (Heard, bool) {
	gone, err := p.t.r.killAgent(ctx, p.t.run.session, p.id.CallID)
	if !gone {
		p.t.r.log.Error("an agent's process can't be ended, and may still run", slog.String("session", p.t.run.session), slog.String("process", p.id.CallID), slog.Any("error", err))
		p.saysItStays(ctx)
		return Heard{}, false
	}
	return Heard{Ended: true, Err: shim.ErrLost}, true
}

// Unread is how much of what the process wrote, in bytes, stands in no commit, given
// how it has ended.
func (p *Process) Unread(e *shim.Exit) int64 {
	if e == nil {
		return 0
	}
	return max(e.Spool-p.readTo, 0)
}

// Missed reports that a frame surely did not reach the process: it had ended
// before, and nobody has tried to give it earlier, or it had closed its stdin.
func (p *Process) Missed(n int64) bool { return p.missed > 0 && n >= p.missed }

// Shut tells that the process has closed its stdin although there was something to tell
// it: the first frame that it surely didn't read whole, for Miss.
func (p *Process) Shut() <-chan int64 { return p.shut }

// Miss notes from which frame on nothing reached the process.
func (p *Process) Miss(n int64) {
	if p.missed == 0 || n < p.missed {
		p.missed = n
	}
}

// Told is how many frames the process was given, by whichever server.
func (p *Process) Told() int64 { return p.sent }

// Heard gives what the process writes, in order. One that is not taken keeps the
// process waiting on its pipe, once its spool is read.
func (p *Process) Heard() <-chan Heard { return p.heard }

// follow reads the spool on, in a goroutine that close waits for.
func (p *Process) follow() {
	p.heard, p.shut, p.stays = make(chan Heard), make(chan int64, 1), make(chan struct{}, 1)
	p.mute.begin(p.readTo)
	ctx, stop := context.WithCancelCause(context.WithoutCancel(p.t.run.ctx))
	p.stop = stop
	from := p.readTo // which goes on while it is read
	p.t.r.spawn(&p.wg, "hear "+p.id.CallID, func() { p.hear(ctx, from) })
	if p.child == nil || p.muted {
		return
	}
	if at, muted := p.child.Muted(); muted {
		p.mute.at.Store(at)
	}
	p.t.r.spawn(&p.wg, "stdin of "+p.id.CallID, func() {
		n, err := p.child.Shut(ctx)
		switch {
		case err == nil && n > 0:
			p.shut <- n
		case err != nil && ctx.Err() == nil:
			p.t.r.log.Warn("watch the stdin of an agent", slog.String("process", p.id.CallID), slog.Any("error", err))
		}
	})
	p.t.r.spawn(&p.wg, "stdout of "+p.id.CallID, func() { p.watchStdout(ctx) })
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
	said := int64(0) // what its shim knows to be read
	for {
		on := func(pieces []tool.Piece, next int64) error {
			if err := deliver(pieces, next); err != nil {
				return err
			}
			at = next
			p.mute.reads(at)
			if p.child != nil && at-said >= trimEvery {
				said = at
				if err := p.child.Read(ctx, at); err != nil {
					p.t.r.log.Debug("tell what an agent has said that was read", slog.String("process", p.id.CallID), slog.Any("error", err))
				}
			}
			return nil
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
	if p.hasEnded(ctx, &h) {
		_ = tell(h) // nobody listens any more, if it can't
	}
}

// hearEnd gives how a muted process ended, and nothing that it said.
func (p *Process) hearEnd(ctx context.Context) {
	h := Heard{Ended: true, Exit: p.exit, Muted: true}
	if h.Exit == nil {
		h.Err = shim.ErrLost
	}
	if !p.hasEnded(ctx, &h) {
		return
	}
	select {
	case p.heard <- h:
	case <-ctx.Done():
	}
}

// Stays tells that the process has no shim any more and can't be ended: it may still run,
// and is tried to be ended for as long as it is followed. Nothing is heard of it before.
func (p *Process) Stays() <-chan struct{} { return p.stays }

// hasEnded returns when what was heard of an end is so. A shim that was killed has ended its
// shell at most: what else runs of the process is ended first (LEA-12). False: nobody listens
// any more.
func (p *Process) hasEnded(ctx context.Context, h *Heard) bool {
	for h.Exit == nil {
		err := p.t.r.endLost(ctx, p.t.run.session, p.id.CallID)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return false
		}
		p.t.r.log.Error("an agent's process whose shim is gone can't be ended, and may still run", slog.String("session", p.t.run.session), slog.String("process", p.id.CallID), slog.Any("error", err))
		select {
		case p.stays <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryEvery):
		}
	}
	return true
}

// isGone ends what is left of a process that no shim keeps.
func (p *Process) isGone(ctx context.Context) bool {
	_, gone := p.Await(ctx)
	if !gone {
		_, gone = p.Kill(ctx)
	}
	return gone
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

// trimEvery is how much of a spool is read before its room is given back, and trimAtLeast
// if the disk has less left than that.
const trimEvery, trimAtLeast = 4 << 20, 64 << 10

// trim gives back the room of what is in the journal: an agent may talk for days.
func (p *Process) trim() {
	if n := p.readTo - p.trimmed; n < trimAtLeast || n < trimEvery && p.t.r.room(trimEvery) {
		return // of a disk that is nearly full little is worth it, too
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

// ErrFrame says that what an agent's process was to be told is longer than its shim
// takes. Nothing of it was committed or sent.
var ErrFrame = journal.Errorf(journal.TooLarge, "What the agent was to be told is longer than %d MB, which is more than it can be told at once.", shim.MaxFrame>>20).Typed("frame-too-long")

// IsOpen reports whether the nth has no answer.
func (p *Process) IsOpen(n int64) bool {
	return slices.ContainsFunc(p.asks, func(a Ask) bool { return a.N == n })
}

// AsksFor reports whether any of them is about a call.
func (p *Process) AsksFor(callID string) bool {
	return slices.ContainsFunc(p.asks, func(a Ask) bool { return a.CallID == callID })
}

func (p *Process) commit(ctx context.Context, a store.Append, io store.AgentIO) error {
	if slices.ContainsFunc(io.Frames, func(f []byte) bool { return len(f) > shim.MaxFrame }) {
		return ErrFrame
	}
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
		if errors.Is(err, shim.ErrFull) && p.t.Attempt() != "" { // it can't be taken back: it is told when there is room
			if err := p.awaitRoom(ctx, err); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, shim.ErrFull) {
			return errors.Join(ErrNoRoom, err)
		}
		if err != nil {
			return causeOr(ctx, fmt.Errorf("tell the agent's process %s: %w", p.id.CallID, err))
		}
		store.Crash("agent.told")
		p.logged = f.N
		p.unsent = p.unsent[1:]
	}
	return nil
}

// ErrNoRoom says that the disk has no room for what an agent is to be told, nothing of which
// was told. It may be tried again.
var ErrNoRoom = errors.New("the disk on which the server keeps the processes of agents is full")

// awaitRoom pauses before the process is told once more what found no room.
func (p *Process) awaitRoom(ctx context.Context, err error) error {
	p.t.r.log.Warn("tell an agent, once there is room", slog.String("session", p.t.run.session), slog.String("process", p.id.CallID), slog.Any("error", err))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.t.run.ctx.Done():
		return context.Cause(p.t.run.ctx)
	case <-time.After(retryEvery):
		return nil
	}
}

// Resend gives the process what an earlier server may not have told it.
func (p *Process) Resend(ctx context.Context) error { return p.deliver(ctx) }

// CloseStdin ends what the process is told: it is about to be ended. A shim that doesn't
// take it is not waited for longer than ctx lasts.
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
