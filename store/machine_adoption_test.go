package store_test

import (
	"slices"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func (m *machine) claim(s *model) {
	worker := m.draw("worker", m.workers...)
	now := m.now()
	if s.expired(now) && m.mutant != "" { // a claim recovers rightly, which would hide the mutant
		m.sweep(s)
	}
	c, err := m.store.Claim(m.ctx, store.ClaimRequest{SessionID: s.id, WorkerID: worker, StateFolderID: m.folder, Lease: machineLease})
	m.ok(err)
	m.claimed(s, c, worker, now, true)
}

// claimed holds an answer against the model; alone: no worker of another folder lives.
func (m *machine) claimed(s *model, c *journal.Claim, worker string, now int64, alone bool) {
	m.rt.Helper()
	may, folder := true, m.folder
	if worker == m.elsewhere {
		folder = m.otherFolder
	}
	switch {
	case s.claim == nil:
	case s.expired(now):
		m.seen["taken over"]++
		s.recover(now, nil) // nobody has asked a shim
	case s.claim.WorkerID == worker && !s.uncertain:
		s.dropClaim()
	default:
		may = false
	}
	if may && alone {
		s.forsake(folder)
		s.touch(now)
	}
	mine := !slices.ContainsFunc(s.inState(journal.CallIsDispatched), func(id string) bool { return s.calls[id].adopted != "" && s.calls[id].adopted != folder })
	if want := may && mine && s.hasWork(); (c != nil) != want {
		m.rt.Fatalf("claimed: %v, the model says %v", c, want)
	}
	if c == nil {
		m.seen["no claim"]++
		return
	}
	m.seen["claimed"]++
	s.claim, s.uncertain = c, s.adopts()
	if want := map[bool]journal.Phase{false: journal.PhaseReady, true: journal.PhaseUncertain}[s.uncertain]; c.Phase != want {
		m.rt.Fatalf("the claim begins %s, want %s", c.Phase, want)
	}
}

// claimElsewhere is a worker of another host that looks for work.
func (m *machine) claimElsewhere(s *model) {
	now := m.now()
	if s.expired(now) && m.mutant != "" {
		m.sweep(s)
	}
	lives := m.flip("the folder's worker lives")
	m.ok(m.store.ForgetWorkers(m.ctx, m.folder, "none"))
	if lives {
		m.ok(m.store.SeeWorker(m.ctx, store.Worker{ID: m.workers[0], StateFolderID: m.folder}))
	}
	adopted := s.adopts()
	c, err := m.store.Claim(m.ctx, store.ClaimRequest{SessionID: s.id, WorkerID: m.elsewhere, StateFolderID: m.otherFolder, Lease: machineLease})
	m.ok(err)
	m.claimed(s, c, m.elsewhere, now, !lives)
	if adopted && s.claim == nil {
		m.seen[map[bool]string{true: "left to its folder", false: "forsaken"}[s.adopts()]]++
	}
}

// readOn journals a piece of what a shim keeps, with the offset up to which it was read.
func (m *machine) readOn(s *model) {
	id := m.draw("spool", s.spooled()...)
	c := s.calls[id]
	step := int64(m.pick("bytes", 3)) * 5
	sp := store.Spool{CallID: id, N: c.n, StateFolderID: s.claim.StateFolderID, ReadTo: c.readTo + step}
	piece := storetest.Drafts(&journal.CallOutput{CallID: id, Stream: "stdout", Offset: c.readTo, Text: journal.T("01234")})
	now := m.now()
	if c.readTo > 0 && m.flip("what was read already") {
		sp.ReadTo = c.readTo - 1
		_, err := m.store.Append(m.ctx, s.claim, store.Append{Drafts: piece, Spool: &sp})
		m.code(err, journal.Conflict)
	} else {
		_, err := m.store.Append(m.ctx, s.claim, store.Append{Drafts: piece, Spool: &sp})
		m.ok(err)
		c.readTo = sp.ReadTo
		s.touch(now)
	}
	at, err := m.store.SpoolOffset(m.ctx, id, c.n)
	m.ok(err)
	if at != c.readTo {
		m.rt.Fatalf("read to %d, the model says %d", at, c.readTo)
	}
	m.code(m.store.ForgetSpool(m.ctx, id, c.n), journal.Conflict)
}

// follow brings the end of what was adopted.
func (m *machine) follow(s *model) {
	for _, id := range s.inState(journal.CallIsDispatched) {
		if s.calls[id].adopted != "" {
			m.settleOne(s, id)
			m.seen["followed"]++
			return
		}
	}
}

// found is what the shims say of the calls of a lost execution.
func (m *machine) found(s *model) map[string]store.Found {
	out := map[string]store.Found{}
	for _, id := range s.spooled() {
		switch m.draw("its shim", "runs", "runs", "ended", "is gone") {
		case "runs":
			out[id] = store.Found{Adopted: true}
			m.seen["adopted"]++
		case "ended":
			out[id] = store.Found{Settled: storetest.Settle(id, journal.CallState(m.draw("state", "succeeded", "failed", "cancelled")))}
			m.seen["exit record"]++
		}
	}
	return out
}
