package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
)

// examine finds out what became of a call that a lost execution had dispatched
// (CAL-5): its shim still holds its lock, or left a record, or neither. Only the
// server of the state folder in which the shim lives can ask it.
func (r *Runner) examine(ctx context.Context, rec *store.Recovery, call *journal.Call) error {
	if call.Process == nil {
		return nil
	}
	if rec.Claim.StateFolderID == r.o.StateFolderID {
		known, err := r.ask(ctx, rec, call)
		if known || err != nil {
			return err
		}
	}
	rec.Evidence[call.ID] = append(rec.Evidence[call.ID], r.endLeftover(ctx, rec.Claim, call))
	return nil
}

// ask asks a call's shim, and reports whether it knew the outcome, or that there
// is none yet. What the shim had spooled is journalled either way.
func (r *Runner) ask(ctx context.Context, rec *store.Recovery, call *journal.Call) (known bool, err error) {
	id := shim.ID{CallID: call.ID, N: call.N}
	found, err := r.o.Shims.Bury(id) // a shim that is slow to start must not start once its call is unknown
	switch {
	case err != nil:
		return false, fmt.Errorf("ask the shim of %s: %w", id.CallID, err)
	case found.Running:
		rec.Found[call.ID] = store.Found{Adopted: true}
		return true, nil
	}
	if found.Exit != nil && cutShort(call, *found.Exit) {
		return true, nil
	}
	if err := r.rescue(ctx, rec.Claim, id); err != nil || found.Exit == nil {
		return false, err
	}
	body, left := outcome(call, *found.Exit)
	if left != nil {
		rec.Evidence[call.ID] = append(rec.Evidence[call.ID], *left)
		return true, nil
	}
	rec.Found[call.ID] = store.Found{Settled: body}
	return true, nil
}

// rescue journals what the spool of a command that has ended still holds.
func (r *Runner) rescue(ctx context.Context, c journal.Claim, id shim.ID) error {
	from, err := r.store.SpoolOffset(ctx, id.CallID, id.N)
	if journal.Is(err, journal.NotFound) { // dispatched by a build without shims
		return nil
	}
	if err != nil {
		return err
	}
	return r.o.Shims.Read(ctx, id, from, func(pieces []tool.Piece, next int64) error {
		return r.store.RecoverOutput(ctx, c, outputDrafts(id, pieces), *r.spool(id, next))
	})
}

// sweepShims ends commands that belong to no execution any more, says what it saw
// of those whose outcome is unknown, and removes the folders of settled ones.
//
// A call that was never dispatched may have a folder of an earlier server, and be
// dispatched under the same name at any moment. So a name is taken before it is looked
// up, and whoever dispatches waits: what is cleared away is what was looked up.
func (r *Runner) sweepShims(ctx context.Context) {
	strays, err := r.strays(ctx)
	if err != nil {
		r.log.Warn("look for shims that nobody follows", slog.Any("error", err))
	}
	r.clearAll(ctx, strays)
}

// stray is a child that no execution here deals with.
type stray struct {
	row   *store.SpoolRow // nil: its dispatch was never committed
	letGo func()
}

// strays takes those that are there, and looks them up. Who asks clears them away.
func (r *Runner) strays(ctx context.Context) (map[shim.ID]*stray, error) {
	ids, err := r.o.Shims.List()
	if err != nil {
		return nil, err
	}
	strays := map[shim.ID]*stray{}
	for _, id := range ids {
		if isAgent(id) {
			continue
		}
		if letGo, ok := r.occupied.try(id.String()); ok {
			strays[id] = &stray{letGo: letGo}
		}
	}
	if err := r.lookUp(ctx, strays); err != nil {
		letGo(strays)
		return nil, err
	}
	return strays, nil
}

func letGo(strays map[shim.ID]*stray) {
	for _, s := range strays {
		s.letGo()
	}
}

func (r *Runner) clearAll(ctx context.Context, strays map[shim.ID]*stray) {
	for id, s := range strays {
		if ctx.Err() != nil {
			break
		}
		delete(strays, id)
		if err := r.clear(ctx, id, s); err != nil && ctx.Err() == nil {
			r.log.Warn("clear away a shim", slog.String("call", id.CallID), slog.Any("error", err))
		}
	}
	letGo(strays)
}

// lookUp adds to strays what the journal knows of them, and what it alone knows, and
// takes out those that are followed, or to be recovered.
func (r *Runner) lookUp(ctx context.Context, strays map[shim.ID]*stray) error {
	rows, err := r.spools(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		row := &rows[i]
		id := shim.ID{CallID: row.CallID, N: row.N}
		s, has := strays[id]
		if row.State == journal.CallIsDispatched && row.N == row.CallN {
			if has {
				delete(strays, id)
				s.letGo()
			}
			continue
		}
		if !has {
			letGo, ok := r.occupied.try(id.String())
			if !ok {
				continue
			}
			s = &stray{letGo: letGo}
			strays[id] = s
		}
		s.row = row
	}
	return nil
}

func (r *Runner) spools(ctx context.Context) ([]store.SpoolRow, error) {
	var out []store.SpoolRow
	after := ""
	for ctx.Err() == nil {
		page, err := r.store.Spools(ctx, r.o.StateFolderID, after, sweepBatch)
		if err != nil {
			return nil, err
		}
		out = append(out, page...)
		if len(page) < sweepBatch {
			break
		}
		after = page[len(page)-1].CallID
	}
	return out, nil
}

// clear tells what is to be told of a stray, removes what is left of it, and lets
// go. One that runs is ended first; the sweep doesn't wait for that.
func (r *Runner) clear(ctx context.Context, id shim.ID, s *stray) error {
	found, err := r.o.Shims.Find(id)
	if err == nil && found.Running {
		r.spawn(&r.loops, "end of "+id.String(), func() { defer r.kickSweep(); defer s.letGo(); r.endStray(ctx, id, reasonStray) })
		return nil
	}
	defer s.letGo()
	if err != nil {
		return err
	}
	row := s.row
	if row != nil && row.State == journal.CallIsUnknown && found.Exit != nil && !row.Testified {
		if err := r.store.Evidence(ctx, row.SessionID, id.CallID, testimony(found.Exit)); err != nil {
			return err
		}
	}
	if row != nil {
		if err := r.store.ForgetSpool(ctx, id.CallID, id.N); err != nil {
			return err
		}
	}
	return r.o.Shims.Remove(id)
}

// strayPatience bounds how long a sweep keeps the name of a shim that doesn't answer,
// since somebody has stopped it, from whoever wants to dispatch under it.
const strayPatience = 30 * time.Second

// endStray ends a command whose session was recovered without it, or whose
// dispatch was never committed, and waits for its end. What takes longer the next
// sweep meets again.
func (r *Runner) endStray(ctx context.Context, id shim.ID, reason string) {
	ctx, cancel := context.WithTimeout(ctx, strayPatience)
	defer cancel()
	child, err := r.o.Shims.Attach(ctx, id)
	if err == nil {
		defer r.closeChild(child)
		r.log.Info("end what nobody needs any more", slog.String("child", id.CallID), slog.String("reason", reason))
		if err = child.End(reason, 0); err == nil {
			_, err = child.Await(ctx)
		}
	}
	if err != nil && !errors.Is(err, shim.ErrLost) && ctx.Err() == nil {
		r.log.Warn("end what nobody needs any more", slog.String("child", id.CallID), slog.Any("error", err))
	}
}

// testimony is the late evidence beside an unknown call: what its shim recorded.
func testimony(e *shim.Exit) journal.Evidence {
	text := "Its command ended at " + journal.TimeInWords(e.EndedAt)
	switch {
	case !e.Started:
		text = "Nothing of its command ran"
	case e.Signal != "":
		text += " by " + e.Signal
	case e.ExitCode != nil:
		text += fmt.Sprintf(" with exit code %d", *e.ExitCode)
	}
	if e.Started && e.Reason != "" {
		text += fmt.Sprintf(", because it was ended (%s)", e.Reason)
	}
	if len(e.Survivors) > 0 {
		text += fmt.Sprintf(", and left processes that could not be ended: %v", e.Survivors)
	}
	return journal.Evidence{Type: journal.EvidenceExitRecord, Text: journal.Cut(text+".", 1000)}
}
