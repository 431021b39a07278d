package store

import (
	"context"
	"fmt"

	"holdfast/journal"
)

// adopt says of a call whose execution is lost that it still runs, kept by a
// state folder. That is said once: who is found again by the same folder was
// never let go (CAL-8).
func (l *locked) adopt(ctx context.Context, callID, folder string) error {
	c, err := loadCall(ctx, l.t, callID)
	if err != nil {
		return err
	}
	kept, err := hasSpool(ctx, l.t, callID, folder)
	if err != nil {
		return err
	}
	if !kept { // whoever follows it would not know from where to read on
		return journal.Errorf(journal.Conflict, "The call %s can't be adopted: the state folder %s keeps no output of its last dispatch.", callID, folder).Typed("no-such-spool")
	}
	if c.State == journal.CallIsDispatched && c.AdoptedBy == folder {
		return nil
	}
	return l.append(ctx, journal.Server(), &journal.CallAdopted{CallID: callID, Since: c.DispatchedAt, StateFolderID: folder})
}

// letGo says that nobody follows an adopted call any more which may be run again.
func (l *locked) letGo(ctx context.Context, callID string) error {
	c, err := loadCall(ctx, l.t, callID)
	if err != nil {
		return err
	}
	return l.append(ctx, journal.Server(), &journal.CallAdopted{CallID: callID, Since: c.DispatchedAt})
}

// maySucceed decides whether a worker of a state folder may follow what the
// session has adopted. What another folder adopted is left to its workers while
// one of them lives. If none does, nobody follows it: an effect is unknown then,
// and what may be run again is let go (CAL-4).
func (l *locked) maySucceed(ctx context.Context, folder string) (bool, error) {
	if l.row.ExecutionID.Valid || !l.st.Adopts() {
		return true, nil
	}
	for _, c := range l.st.Adopted() {
		if c.Adopted == folder {
			continue
		}
		if lives, err := folderLives(ctx, l.t, c.Adopted, workerFresh.Milliseconds()); err != nil || lives {
			return false, err
		}
		if err := l.forsake(ctx, c); err != nil {
			return false, err
		}
	}
	if may, err := l.maySucceedAgent(ctx, folder); err != nil || !may {
		return false, err
	}
	return true, l.carryOut(ctx)
}

// maySucceedAgent is the same for an attempt that was adopted with its agent's process.
func (l *locked) maySucceedAgent(ctx context.Context, folder string) (bool, error) {
	p := l.st.Process
	if p == nil || p.AdoptedAt == 0 || p.Folder == folder {
		return true, nil
	}
	if lives, err := folderLives(ctx, l.t, p.Folder, workerFresh.Milliseconds()); err != nil || lives {
		return false, err
	}
	return true, l.loseAgent(ctx, folder, "")
}

func (l *locked) forsake(ctx context.Context, c journal.OpenCall) error {
	if c.Effect != journal.EffectEffect {
		return l.letGo(ctx, c.ID)
	}
	call, err := loadCall(ctx, l.t, c.ID)
	if err != nil {
		return err
	}
	host := "another host"
	if call.Process != nil {
		host = call.Process.Host
	}
	return l.unknown(ctx, c.ID, []journal.Evidence{{Type: journal.EvidenceProcess, Text: fmt.Sprintf("It was still running on %s when it was last seen there, at %s. No server there answers now. It may still be running.",
		host, journal.TimeInWords(call.AdoptedAt))}})
}

// othersMayAsk reports whether an expired claim has something under shims of a
// folder that isn't the one given, and that folder's workers are there to ask them.
func (l *locked) othersMayAsk(ctx context.Context, c *journal.Claim, by string) (bool, error) {
	if by == "" || by == c.StateFolderID {
		return false, nil
	}
	var n int
	err := l.t.get(ctx, &n, "SELECT count(*) FROM spool s JOIN call c ON c.id = s.call_id WHERE s.session_id = ? AND s.state_folder_id = ? AND c.state = 'dispatched' AND c.n = s.n", l.row.ID, c.StateFolderID)
	agent := l.st.Process != nil && l.st.Process.Folder == c.StateFolderID && len(l.st.Attempts) > 0
	if err != nil || (n == 0 && !agent) {
		return false, err
	}
	return folderLives(ctx, l.t, c.StateFolderID, c.LeaseMS)
}

// folderLives reports whether a worker of a state folder was seen in the last so
// many milliseconds. It is written down at each renewal, so after a lease without
// a word it counts as gone, as its claims do.
func folderLives(ctx context.Context, q querier, folder string, within int64) (bool, error) {
	var n int
	d := q.dialect()
	err := q.get(ctx, &n, "SELECT count(*) FROM worker WHERE state_folder_id = ? AND seen_at > "+d.now()+" - ?", folder, d.nowArg(), within)
	return n > 0, err
}

// carryOut ends an interrupted turn where no execution can: nobody holds the
// session, and nothing is adopted that a claim must end first (COO-4, REC-6).
func (l *locked) carryOut(ctx context.Context) error {
	if l.row.ExecutionID.Valid || l.st.Adopts() || !l.st.TurnOpen() || l.st.Interrupt == nil {
		return nil
	}
	return l.endTurn(ctx, journal.Server(), l.st.Stopped())
}
