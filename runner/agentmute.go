package runner

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// mute is what is known of the stdout of an agent's process, without which nobody hears
// what it does.
type mute struct {
	at    atomic.Int64 // of the spool, behind all that it wrote there before it closed it; -1: it has it, as far as is known
	heard atomic.Int64 // of the spool, behind what was heard
	more  chan struct{}
	told  chan struct{} // closed when both is so
}

func (m *mute) begin(readTo int64) {
	m.at.Store(-1)
	m.heard.Store(readTo)
	m.more, m.told = make(chan struct{}, 1), make(chan struct{})
}

// reads notes up to where the spool was heard.
func (m *mute) reads(at int64) {
	m.heard.Store(at)
	select {
	case m.more <- struct{}{}:
	default:
	}
}

func (m *mute) so() bool { return m.at.Load() >= 0 && m.heard.Load() >= m.at.Load() }

// Mute tells that the process has closed its stdout although it lives, and that all that it
// wrote there was heard.
func (p *Process) Mute() <-chan struct{} { return p.mute.told }

// IsMute is what Mute tells, for who doesn't wait. Of a process that another run has left
// so it is known from the start.
func (p *Process) IsMute() bool { return p.mute.so() }

// watchStdout waits for the shim to tell that the process has closed its stdout. One that
// is older can't, and its process goes on as one that is silent.
func (p *Process) watchStdout(ctx context.Context) {
	at, muted := p.child.Muted()
	if !muted {
		var err error
		at, muted, err = p.child.Mute(ctx)
		if err != nil && ctx.Err() == nil {
			p.t.r.log.Warn("watch the stdout of an agent", slog.String("process", p.id.CallID), slog.Any("error", err))
		}
	}
	if !muted {
		return
	}
	for p.mute.at.Store(at); !p.mute.so(); {
		select {
		case <-p.mute.more:
		case <-ctx.Done():
			return
		}
	}
	close(p.mute.told)
}
