package store

import (
	"context"
	"strings"
	"unicode/utf8"

	"holdfast/journal"
)

type verifiedReceipt struct {
	receiptRow
	Owner string `db:"owner_id"`
	Key   string `db:"idem_key"`
}

func (o *verification) loadReceipts(ctx context.Context) error {
	o.receipts = map[int64][]verifiedReceipt{}
	var rows []verifiedReceipt
	if err := o.q.all(ctx, &rows, "SELECT "+receiptColumns+", owner_id, idem_key FROM receipt WHERE session_id = ?", o.id); err != nil {
		return err
	}
	o.v.checked(CheckReceipts, len(rows))
	for _, r := range rows {
		if r.Owner != o.row.OwnerID {
			o.v.fault(CheckReceipts, "%s: the receipt for the key %q is of %s, the session of %s", o.id, r.Key, r.Owner, o.row.OwnerID)
		}
		o.receipts[r.Seq] = append(o.receipts[r.Seq], r)
	}
	return nil
}

// owed is what an event says of its receipt. Of the hash of a session's creation
// it says nothing: that is over the folder's name as it was typed, too.
type owed struct {
	op      journal.Operation
	subject string
	must    bool     // it can't have been accepted without one (ADM-1)
	hashes  []string // one of them is the payload's; nil: they can't be computed anew
}

// owes gives the receipt that an event must or may have.
func (o *verification) owes(ctx context.Context, ev *journal.Event, body journal.Body) (owed, error) {
	switch b := body.(type) {
	case *journal.SessionCreated:
		o.created = ev.Time
		return owed{op: journal.OpCreateSession, subject: o.id, must: true}, nil
	case *journal.PromptAdmitted:
		// A first prompt may have come with its session, under the session's key (ADM-6).
		w := owed{op: journal.OpCreatePrompt, subject: b.PromptID, must: ev.Seq != 2 || ev.Time != o.created}
		text, err := o.whole(ctx, b.Text)
		if text != "" {
			w.hashes = []string{PromptInput{Text: text, Delivery: b.Delivery}.hash()}
			if b.Delivery == journal.Steer { // also one that came with a stop, which there may have been nothing for
				w.hashes = append(w.hashes, PromptInput{Text: text, Delivery: b.Delivery, Stops: true}.hash())
			}
		}
		return w, err
	case *journal.PermissionAsked:
		o.digests[b.ID] = b.Digest
	case *journal.PermissionReplied: // a key is optional there
		w := owed{op: journal.OpDecide, subject: b.ID}
		if asWritten(b.Message) {
			for _, digest := range []string{"", o.digests[b.ID]} {
				w.hashes = append(w.hashes, Decision{Reply: b.Reply, Message: b.Message, Digest: digest}.hash())
			}
		}
		return w, nil
	case *journal.SettingsChosen: // likewise
		w := owed{op: journal.OpChooseSettings, subject: o.id}
		if raw, err := journal.Encode(b.Settings); err == nil && asWritten(string(raw)) {
			w.hashes = []string{settingsHash(b.Settings)}
		}
		return w, nil
	}
	return owed{}, nil
}

// whole gives a text as it was sent, or "" where that can't be told.
func (o *verification) whole(ctx context.Context, text journal.Text) (string, error) {
	s := text.S
	if text.Blob != "" {
		var data []byte
		if err := o.get(ctx, &data, "SELECT data FROM blob WHERE session_id = ? AND sha256 = ?", o.id, text.Blob); err != nil {
			return "", err
		}
		if s = string(data); journal.Hash(s) != text.Blob { // its own fault, said of the blob
			return "", nil
		}
	}
	if !asWritten(s) {
		return "", nil
	}
	return s, nil
}

// asWritten reports that a text is surely what was sent: nothing in it can have
// been put there by the cleaning (JRN-8).
func asWritten(s string) bool {
	return !strings.Contains(s, journal.Hidden) && !strings.ContainsRune(s, utf8.RuneError)
}

// meet strikes out the receipts that an event fulfils, and reports one that it lacks.
func (o *verification) meet(ctx context.Context, ev *journal.Event, body journal.Body) error {
	w, err := o.owes(ctx, ev, body)
	if err != nil {
		return err
	}
	var left []verifiedReceipt
	met := false
	for _, r := range o.receipts[ev.Seq] {
		if journal.Operation(r.Operation) != w.op || r.Subject != w.subject {
			left = append(left, r)
			continue
		}
		met = true
		o.compareReceipt(ev, r, w)
	}
	if delete(o.receipts, ev.Seq); len(left) > 0 {
		o.receipts[ev.Seq] = left
	}
	if w.must && !met {
		o.v.fault(CheckReceipts, "%s: #%d (%s) was accepted, and its receipt is missing", o.id, ev.Seq, ev.Kind)
	}
	return nil
}

func (o *verification) compareReceipt(ev *journal.Event, r verifiedReceipt, w owed) {
	if r.CreatedAt != ev.Time {
		o.v.fault(CheckReceipts, "%s: the receipt for the key %q is of %d, its event #%d of %d", o.id, r.Key, r.CreatedAt, ev.Seq, ev.Time)
	}
	same := len(w.hashes) == 0 && isHash(r.Payload)
	for _, h := range w.hashes {
		same = same || h == r.Payload
	}
	if !same {
		o.v.fault(CheckReceipts, "%s: the receipt for the key %q has the hash %s, which isn't that of #%d", o.id, r.Key, journal.Cut(r.Payload, 80), ev.Seq)
	}
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// leftOverReceipts reports the receipts that no event fulfilled.
func (o *verification) leftOverReceipts() {
	for seq, rs := range o.receipts {
		for _, r := range rs {
			o.v.fault(CheckReceipts, "%s: the receipt for the key %q (%s) names #%d, which isn't there or says something else", o.id, r.Key, r.Operation, seq)
		}
	}
}
