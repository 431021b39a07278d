package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
)

// processName is the name under which an agent's process is kept by its shim.
func processName(processID string) shim.ID { return shim.ID{CallID: processID, N: 1} }

// Process gives the process of this session's agent: the one that runs, also if
// another execution started it, or else a new one, which is told first. Whoever asked
// closes it.
func (t *Turn) Process(ctx context.Context, spec ProcessSpec, first [][]byte) (*Process, error) {
	if was := t.fold.State.Process; was != nil {
		if p, err := t.rejoinProcess(ctx, was, false); p != nil || err != nil {
			return p, err
		}
	}
	return t.startProcess(ctx, spec, first)
}

// attach joins the process. One whose shim doesn't answer, since somebody has stopped
// that, is waited for, unless it is to be ended, or a person stops its turn: then it is ended
// without its shim, and what it has written is read (LEA-12).
func (p *Process) attach(ctx context.Context, ends bool) error {
	t, warned := p.t, false
	for {
		child, late, err := t.r.attach(ctx, p.id)
		switch {
		case err == nil:
			p.child = child
			return nil
		case errors.Is(err, shim.ErrLost):
			return nil
		case !late && errors.Is(context.Cause(ctx), ErrShutdown):
			return t.left()
		case !late:
			return causeOr(ctx, fmt.Errorf("rejoin the agent's process: %w", err))
		}
		if err := t.refresh(ctx); err != nil {
			return err
		}
		ends = ends || t.fold.State.Interrupt.AtOnce()
		if !warned || ends {
			warned = true
			t.r.log.Warn("the shim of an agent's process doesn't answer", slog.String("session", t.run.session), slog.String("process", p.id.CallID), slog.Bool("ends", ends))
		}
		if ends {
			if _, gone := p.Kill(ctx); !gone {
				return t.Stays()
			}
			return nil
		}
	}
}

// causeOr tells why ctx has ended, or of err if it hasn't.
func causeOr(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// rejoinProcess follows the process that the journal knows of. nil: it is another
// host's, or it has ended and nobody waits for what it said; then its end is journalled. ends: it is to
// be ended, whether its shim answers or not.
func (t *Turn) rejoinProcess(ctx context.Context, was *journal.AgentProcess, ends bool) (*Process, error) {
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
	var ended journal.Body = endedBy(was.ID, nil)
	if was.Folder != t.r.o.StateFolderID {
		lost, err := t.r.store.LostAgent(context.WithoutCancel(ctx), t.run.session, was.ID)
		if err != nil {
			return nil, err
		}
		ended = &lost
	}
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
			if err := p.attach(ctx, ends); err != nil {
				return nil, err
			}
		}
		// Also of one that is gone: what it wrote before is read first.
		if p.child != nil || inFlight {
			kept = true
			p.follow()
			return p, nil
		}
		if found.Exit == nil && !p.isGone(context.WithoutCancel(ctx)) {
			return nil, t.Stays()
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
	if spec.May != nil {
		if err := spec.May(ctx); err != nil {
			return nil, err
		}
	}
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
			MaxOutput: wholeOutput, Secrets: spec.masks(slices.Concat(o.Secrets, given.Secrets)), JSON: spec.Shape != nil, Vital: true,
		},
		Stdin: true, Orphan: o.Orphan, MaxUnread: mostUnread,
	})
	if shim.NoRoom(err) {
		letGo()
		return nil, errors.Join(ErrNoRoom, err)
	}
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
