package store

import (
	"context"

	"holdfast/journal"
)

// compareSpools holds what is noted of spools against the calls: how far one was
// read is a fact of its machine, but whose it is isn't. What is adopted has one,
// or nobody could read on.
func (o *verification) compareSpools(ctx context.Context) error {
	var rows []struct {
		CallID string `db:"call_id"`
		N      int    `db:"n"`
		Folder string `db:"state_folder_id"`
		ReadTo int64  `db:"read_to"`
	}
	if err := o.q.all(ctx, &rows, "SELECT call_id, n, state_folder_id, read_to FROM spool WHERE session_id = ? ORDER BY call_id", o.id); err != nil {
		return err
	}
	o.v.checked(CheckSpools, len(rows))
	keeps := map[string]string{}
	for _, r := range rows {
		keeps[r.CallID] = r.Folder
		c, err := loadCall(ctx, o.q, r.CallID)
		switch {
		case journal.Is(err, journal.NotFound), err == nil && c.SessionID != o.id:
			o.v.fault(CheckSpools, "%s: there is a spool of the call %s, which isn't one of the session", o.id, r.CallID)
		case err != nil:
			return err
		case r.N < 1, r.N > c.N, r.ReadTo < 0:
			o.v.fault(CheckSpools, "%s: the spool of the call %s is of dispatch %d, read to %d; the call was dispatched %d times", o.id, r.CallID, r.N, r.ReadTo, c.N)
		}
	}
	if o.broken {
		return nil
	}
	for _, c := range o.st.Adopted() {
		if keeps[c.ID] != c.Adopted {
			o.v.fault(CheckSpools, "%s: the call %s is adopted by %s, which keeps no spool of it", o.id, c.ID, c.Adopted)
		}
	}
	return nil
}

// compareAdopted holds a claim against what it has adopted: it is uncertain until
// all of that is settled (LEA-1), and of the folder that keeps it.
func (o *verification) compareAdopted(c *journal.Claim) {
	for _, call := range o.st.Adopted() {
		if c.Phase != journal.PhaseUncertain || c.StateFolderID != call.Adopted {
			o.v.fault(CheckClaims, "%s: the call %s is adopted by %s, and the claim is %s, of %s", o.id, call.ID, call.Adopted, c.Phase, c.StateFolderID)
		}
	}
	if p := o.st.Process; p != nil && p.AdoptedAt > 0 && (c.Phase != journal.PhaseUncertain || c.StateFolderID != p.Folder) {
		o.v.fault(CheckClaims, "%s: the agent's process %s is adopted by %s, and the claim is %s, of %s", o.id, p.ID, p.Folder, c.Phase, c.StateFolderID)
	}
}
