package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"holdfast/journal"
)

// loadBlobs hashes each blob of the session, a few at a time.
func (o *verification) loadBlobs(ctx context.Context) error {
	for after := ""; ; {
		var rows []struct {
			Sum  string `db:"sha256"`
			Data []byte `db:"data"`
		}
		if err := o.q.all(ctx, &rows, "SELECT sha256, data FROM blob WHERE session_id = ? AND sha256 > ? ORDER BY sha256 LIMIT 32", o.id, after); err != nil {
			return err
		}
		for _, r := range rows {
			after = r.Sum
			o.blobs[r.Sum] = false
			o.v.checked(CheckBlobs, 1)
			if h := sha256.Sum256(r.Data); hex.EncodeToString(h[:]) != r.Sum {
				o.v.fault(CheckBlobs, "%s: the blob %s holds something else", o.id, r.Sum)
			}
		}
		if len(rows) < 32 {
			return nil
		}
	}
}

// blobPattern finds references in events that this build doesn't know.
var blobPattern = regexp.MustCompile(`"blob":"([0-9a-f]{64})"`)

// refer notes the blobs that an event names.
func (o *verification) refer(ev *journal.Event, body journal.Body) {
	var sums []string
	switch body.(type) {
	case *journal.Opaque:
		for _, m := range blobPattern.FindAllSubmatch(ev.Data, -1) {
			if _, ok := o.blobs[string(m[1])]; ok { // what it means isn't known, so it isn't demanded
				o.blobs[string(m[1])] = true
			}
		}
	default:
		for _, ref := range journal.Blobs(body) {
			sums = append(sums, ref.Blob)
		}
	}
	for _, sum := range sums {
		if _, ok := o.blobs[sum]; !ok {
			o.v.fault(CheckBlobs, "%s: the blob %s of #%d is missing", o.id, sum, ev.Seq)
			continue
		}
		o.blobs[sum] = true
	}
}

// leftOverBlobs reports the blobs that no event named.
func (o *verification) leftOverBlobs() {
	for sum, named := range o.blobs {
		if !named {
			o.v.fault(CheckBlobs, "%s: no event names the blob %s", o.id, sum)
		}
	}
}

// get gives the projector its long texts; one that is missing is reported by refer and reads as empty.
func (o *verification) get(ctx context.Context, dest any, q string, args ...any) error {
	err := o.q.get(ctx, dest, q, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

type verifiedEvent struct {
	eventRow
	Checksum int64 `db:"checksum"`
}

// replay folds the session's events into the scratch tables, 500 at a time.
func (o *verification) replay(ctx context.Context) error {
	for {
		var rows []verifiedEvent
		if err := o.q.all(ctx, &rows, "SELECT "+eventColumns+", checksum FROM event WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT 500", o.id, o.last); err != nil {
			return err
		}
		for i := range rows {
			ev := rows[i].event()
			if err := o.event(ctx, &ev, rows[i].Checksum); err != nil {
				return err
			}
		}
		if len(rows) < 500 {
			break
		}
	}
	o.v.checked(CheckSequence, 1)
	if o.last != o.row.NextSeq {
		o.v.fault(CheckSequence, "%s: the journal ends at #%d, the session at #%d", o.id, o.last, o.row.NextSeq)
	}
	return nil
}

func (o *verification) event(ctx context.Context, ev *journal.Event, sum int64) error {
	o.v.report.Events++
	o.v.checked(CheckEvents, 1)
	if ev.Seq != o.last+1 {
		o.v.fault(CheckSequence, "%s: #%d follows #%d", o.id, ev.Seq, o.last)
	}
	o.last = ev.Seq
	if checksum(ev) != sum {
		o.v.fault(CheckEvents, "%s: #%d (%s) isn't what was written", o.id, ev.Seq, ev.Kind)
	}
	body, err := ev.Decode()
	if err != nil {
		o.v.fault(CheckEvents, "%s: #%d (%s) can't be read", o.id, ev.Seq, ev.Kind)
		o.broken = true
		return nil //nolint:nilerr // the fault is the finding; the others are still looked for
	}
	o.refer(ev, body)
	if err := o.meet(ctx, ev, body); err != nil {
		return err
	}
	if c, ok := body.(*journal.SessionCreated); ok {
		if err := o.compareCreated(c); err != nil {
			return err
		}
	}
	if !o.intended(ev, body) || o.broken {
		return nil
	}
	return o.apply(ctx, ev, body)
}

// intended checks that a call that is dispatched was proposed before.
func (o *verification) intended(ev *journal.Event, body journal.Body) bool {
	switch b := body.(type) {
	case *journal.CallProposed:
		o.proposed[b.CallID] = true
	case *journal.CallDispatched:
		o.v.checked(CheckIntents, 1)
		if !o.proposed[b.CallID] {
			o.v.fault(CheckIntents, "%s: #%d dispatches the call %s, which nobody proposed", o.id, ev.Seq, b.CallID)
			// The rest of the journal still tells its own story; this call has none to compare.
			return false
		}
	}
	return true
}

// apply projects one event. One that can't follow what stands before it is a
// fault of the journal, not of this reading of it.
func (o *verification) apply(ctx context.Context, ev *journal.Event, body journal.Body) error {
	err := project(ctx, o.v.scratch.tx(), o, &o.st, ev, body)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("verify %s: %w", o.id, err)
	}
	o.v.fault(CheckEvents, "%s: #%d (%s) can't follow what stands before it: %v", o.id, ev.Seq, ev.Kind, err)
	o.broken = true
	return nil
}
