package store_test

import (
	"maps"
	"slices"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

type action struct {
	name   string
	weight int
	can    func(*model) bool // nil: always
	do     func(*model)
}

// actions are what may happen.
func (m *machine) actions() []action {
	claimed := func(s *model) bool { return s.claim != nil }
	running := func(s *model) bool { return s.claim != nil && s.turn != "" }
	was := func(s *model) bool { return len(s.old) > 0 }
	return []action{
		{"admit", 2, nil, m.admit},
		{"withdraw", 1, func(s *model) bool { return len(s.prompts) > 0 }, m.withdraw},
		{"claim", 2, nil, m.claim},
		{"claim what is free", 6, func(s *model) bool { return s.claim == nil && s.work() }, m.claim},
		{"promote", 2, claimed, m.promote},
		{"promote into the free", 6, func(s *model) bool { return s.claim != nil && s.turn == "" }, m.promote},
		{"steer", 1, claimed, m.steer},
		{"dispatch", 6, running, m.dispatch},
		{"resume", 2, running, m.resume},
		{"settle", 2, func(s *model) bool { return s.claim != nil && len(s.inState(journal.CallIsDispatched)) > 0 }, m.settle},
		{"read on", 2, func(s *model) bool { return s.claim != nil && len(s.spooled()) > 0 }, m.readOn},
		{"follow to its end", 12, func(s *model) bool { return s.claim != nil && s.adopts() }, m.follow},
		{"die beside a command", 6, func(s *model) bool { return s.claim != nil && len(s.spooled()) > 0 }, func(s *model) { m.expire(s); m.sweep(s) }},
		{"claim what is adopted", 12, func(s *model) bool { return s.claim == nil && s.adopts() }, m.claim},
		{"claim elsewhere", 1, nil, m.claimElsewhere},
		{"claim elsewhere what is adopted", 3, func(s *model) bool { return s.claim == nil && s.adopts() }, m.claimElsewhere},
		{"zombie", 2, was, m.zombie},
		{"pause", 2, claimed, m.pause},
		{"wake", 3, func(*model) bool { return m.paused != nil }, m.wakeUp},
		{"renew", 1, nil, m.renew},
		{"expire", 1, claimed, m.expire},
		{"jump", 1, nil, m.jump},
		{"sweep", 2, func(s *model) bool { return s.claim != nil }, m.sweep},
		{"duplicate", 1, was, m.duplicate},
		{"resolve", 2, func(s *model) bool { return len(s.inState(journal.CallIsUnknown)) > 0 }, m.resolve},
		{"end", 2, running, m.end},
		{"release", 1, claimed, m.release},
		{"continue", 1, nil, m.goOn},
		{"interrupt", 1, nil, m.interrupt},
		{"restart", 1, claimed, m.restart},
	}
}

// next draws what happens to a session, of what can.
func (m *machine) next(s *model) action {
	var names []string
	byName := map[string]action{}
	for _, a := range m.actions() {
		if a.can != nil && !a.can(s) {
			continue
		}
		byName[a.name] = a
		for range a.weight {
			names = append(names, a.name)
		}
	}
	return byName[m.draw("action", names...)]
}

func (m *machine) admit(s *model) {
	key := m.draw("key", "a", "b", "c", "d", "e", "f", "g", "h") + m.folder // keys are the owner's, over all histories
	d, stops, err := journal.ParseDelivery(m.draw("delivery", "queue", "steer", "interrupt"))
	m.ok(err)
	p := prompt(m.draw("text", "one", "two"), d)
	p.Stops = stops
	now := m.now()
	r, err := m.store.SubmitPrompt(m.ctx, m.owner, s.id, key, p)
	if used, ok := m.keys[key]; ok {
		if used.session != s.id || used.p != p {
			m.code(err, journal.Unprocessable)
			m.seen["clash"]++
			return
		}
		m.ok(err)
		m.seen["replayed"]++
		if !r.Replayed || r.ID != used.receipt.ID || r.AdmittedSeq != used.receipt.AdmittedSeq || r.State != s.prompts[r.ID] {
			m.rt.Fatalf("the replay is %+v, the first receipt %+v", r, used.receipt)
		}
		return
	}
	m.ok(err)
	if r.Replayed {
		m.rt.Fatalf("a first use is a replay: %+v", r)
	}
	m.seen["admitted"]++
	m.keys[key] = usedKey{s.id, p, r}
	s.admitted = append(s.admitted, mPrompt{r.ID, p.Delivery == journal.Steer})
	goesOn := s.turn == "" && s.sends()
	s.prompts[r.ID] = journal.InputAdmitted
	s.held = false
	switch {
	case stops && s.turn != "":
		m.seen["sent with a stop"]++
		s.sent, s.interrupted, s.stopsNow = append(s.sent, r.ID), true, true
		s.touch(now)
		if s.claim == nil && !s.adopts() {
			s.endTurn(false)
		}
	case goesOn:
		s.sent = append(s.sent, r.ID)
	}
	s.touch(now)
}

func (m *machine) withdraw(s *model) {
	id := m.draw("prompt", slices.Sorted(maps.Keys(s.prompts))...)
	now := m.now()
	_, err := m.store.WithdrawPrompt(m.ctx, m.owner, id)
	switch s.prompts[id] {
	case journal.InputPromoted:
		m.code(err, journal.Conflict)
	case journal.InputAdmitted:
		m.ok(err)
		sends := s.sends()
		s.prompts[id] = journal.InputWithdrawn
		s.forget(id)
		s.held = s.held || (sends && !s.sends() && s.turn == "")
		s.touch(now)
	default:
		m.ok(err)
	}
}

func (m *machine) promote(s *model) {
	now := m.now()
	evs, err := m.store.PromoteNext(m.ctx, s.claim)
	m.ok(err)
	if s.turn != "" || len(s.admitted) == 0 || s.held || s.blocked || s.interrupted || len(s.unresolved()) > 0 {
		m.none(evs)
		return
	}
	want := s.admitted[0].id
	if steers := s.steers(); len(steers) > 0 {
		want = steers[0]
	}
	got, turn := m.promoted(evs)
	if len(got) != 1 || got[0] != want || turn == "" {
		m.rt.Fatalf("promoted %v opening %q, the model says %s", got, turn, want)
	}
	m.seen["promoted"]++
	s.startTurn(turn)
	s.prompts[want] = journal.InputPromoted
	s.forget(want)
	s.touch(now)
}

func (m *machine) steer(s *model) {
	now := m.now()
	evs, err := m.store.PromoteSteers(m.ctx, s.claim)
	m.ok(err)
	var want []string
	if s.turn != "" && !s.blocked && !s.interrupted && len(s.unresolved()) == 0 {
		want = s.steers()
	}
	got, turn := m.promoted(evs)
	if !slices.Equal(got, want) || turn != "" {
		m.rt.Fatalf("promoted %v, the model says %v", got, want)
	}
	for _, id := range want {
		s.prompts[id] = journal.InputPromoted
		s.forget(id)
		s.touch(now)
	}
}

func (m *machine) none(evs []journal.Event) {
	m.rt.Helper()
	if len(evs) > 0 {
		m.rt.Fatalf("events where the model has none: %v", storetest.Kinds(evs))
	}
}

func (m *machine) promoted(evs []journal.Event) (ids []string, turn string) {
	for i := range evs {
		body, err := evs[i].Decode()
		m.ok(err)
		switch b := body.(type) {
		case *journal.PromptPromoted:
			ids = append(ids, b.PromptID)
		case *journal.TurnStarted:
			turn = b.TurnID
		}
	}
	return ids, turn
}

// dispatch proposes and dispatches a call; the world sees it once that is committed.
func (m *machine) dispatch(s *model) {
	id := callID()
	c := &mCall{effect: journal.Effect(m.draw("effect", "effect", "effect", "read")), state: journal.CallIsProposed}
	r := storetest.Run{Turn: s.turn}
	now := m.now()
	m.ok(m.append(s.claim, m.holds(s.claim), store.Append{Drafts: storetest.Drafts(r.Propose(id, c.effect))}))
	s.calls[id] = c
	s.touch(now)
	m.run1(s, id)
}

// run1 dispatches a call that is proposed, or a read that is to be run again.
func (m *machine) run1(s *model, id string) {
	c := s.calls[id]
	a := store.Append{Drafts: storetest.Drafts(storetest.Dispatch(id, c.n+1))}
	if c.effect == journal.EffectEffect {
		a.Phase = journal.PhaseUncertain
	}
	keeper := ""
	if m.mutant == "" && m.flip("under a shim") { // the mutants append without it
		keeper = s.claim.StateFolderID
		a.Spool = &store.Spool{CallID: id, N: c.n + 1, StateFolderID: keeper}
	}
	now := m.now()
	err := m.append(s.claim, m.holds(s.claim), a)
	if s.stopsNow {
		m.code(err, journal.Conflict)
		m.seen["not begun"]++
		return
	}
	m.ok(err)
	c.state, c.n, c.keeper, c.readTo, c.adopted = journal.CallIsDispatched, c.n+1, keeper, 0, ""
	c.happened++
	if a.Phase != "" {
		s.uncertain, s.safe = true, false
	}
	s.touch(now)
}

// resume is what a drain does with what it finds: calls that the journal says
// are proposed are dispatched, reads that were dispatched are run again (CAL-4)
// unless they still run.
func (m *machine) resume(s *model) {
	calls, err := m.store.Calls(m.ctx, m.owner, s.id, 0)
	m.ok(err)
	for _, c := range calls {
		if c.State == journal.CallIsProposed || (c.State == journal.CallIsDispatched && c.Effect == journal.EffectRead && c.AdoptedBy == "") {
			s.calls[c.ID].n = c.N
			m.run1(s, c.ID)
		}
	}
}

func (m *machine) settle(s *model) {
	m.settleOne(s, m.draw("call", s.inState(journal.CallIsDispatched)...))
}

func (m *machine) settleOne(s *model, id string) {
	state := journal.CallState(m.draw("state", "succeeded", "failed", "cancelled"))
	c := s.calls[id]
	c.state = state
	a := store.Append{Drafts: storetest.Drafts(storetest.Settle(id, state))}
	if !s.effectInAir() && !s.adopts() {
		a.Phase = journal.PhaseSafe
	}
	now := m.now()
	m.ok(m.append(s.claim, m.holds(s.claim), a))
	m.ok(m.store.ForgetSpool(m.ctx, id, c.n))
	if state != journal.CallCancelled {
		s.recoveries = 0
	}
	if a.Phase != "" {
		s.uncertain, s.safe = false, true
	}
	s.touch(now)
}

// zombie is a worker that goes on although its session was taken from it.
func (m *machine) zombie(s *model) {
	c := s.old[m.pick("old", len(s.old))]
	m.fenced(m.append(c, m.holds(c), store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{})}))
	_, err := m.store.PromoteNext(m.ctx, c)
	m.fenced(err)
	_, _, err = m.store.EndTurn(m.ctx, c, store.EndTurn{End: journal.TurnEnded{Outcome: journal.Failed}})
	m.fenced(err)
	_, err = m.store.Release(m.ctx, c, 1)
	m.fenced(err)
}

// pause stops a worker between a look at its claim and its write; wakeUp lets it write.
func (m *machine) pause(s *model) {
	m.paused = &pausedAppend{m: s, claim: s.claim, checked: m.holds(s.claim)}
}

func (m *machine) wakeUp(*model) {
	p := m.paused
	m.paused = nil
	now := m.now()
	err := m.append(p.claim, p.checked, store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{})})
	if p.m.claim == nil || p.m.claim.ExecutionID != p.claim.ExecutionID {
		m.fenced(err)
		return
	}
	m.ok(err)
	p.m.touch(now)
}

func (m *machine) renew(*model) {
	worker := m.draw("worker", m.workers...)
	var ids []string
	want := map[string]*model{}
	for _, s := range m.sessions {
		for _, c := range s.old {
			ids = append(ids, c.ExecutionID)
		}
		if s.claim != nil {
			ids = append(ids, s.claim.ExecutionID)
			if s.claim.WorkerID == worker {
				want[s.claim.ExecutionID] = s
			}
		}
	}
	now := m.now()
	held, err := m.store.RenewClaims(m.ctx, worker, ids, machineLease)
	m.ok(err)
	if len(held) != len(want) {
		m.rt.Fatalf("%d are held, the model says %d", len(held), len(want))
	}
	for id, s := range want {
		if !held[id] {
			m.rt.Fatalf("%s isn't held", id)
		}
		s.claim.ExpiresAt = now + machineLease.Milliseconds()
	}
}

func (m *machine) expire(s *model) {
	m.ok(m.store.ExpireClaim(m.ctx, s.claim))
	s.claim.ExpiresAt = 0
}

func (m *machine) jump(*model) {
	jumps := []time.Duration{time.Hour, -time.Hour, machineLease + 5*time.Minute}
	m.setSkew(m.skew + jumps[m.pick("jump", len(jumps))])
	for _, s := range m.sessions { // what was expired at once is so by the clock of that time
		if s.claim != nil && s.claim.ExpiresAt == 0 {
			m.ok(m.store.ExpireClaim(m.ctx, s.claim))
		}
	}
}

func (m *machine) sweep(*model) {
	now := m.now()
	list, err := m.store.ExpiredClaims(m.ctx, journal.Claim{}, 10_000)
	m.ok(err)
	for _, s := range m.sessions {
		i := slices.IndexFunc(list, func(c journal.Claim) bool { return c.SessionID == s.id })
		if (i >= 0) != s.expired(now) {
			m.rt.Fatalf("listed as expired: %v, the model says %v", i >= 0, s.expired(now))
		}
		if i < 0 {
			continue
		}
		found := m.found(s)
		m.ok(m.recover(list[i], found))
		s.recover(now, found)
		m.seen["recovered"]++
		m.seen["unknown"] += len(s.unresolved())
		if s.blocked {
			m.seen["blocked"]++
		}
	}
}

// duplicate recovers once more what is over.
func (m *machine) duplicate(s *model) {
	c := s.old[m.pick("old", len(s.old))]
	done, err := m.store.Recover(m.ctx, store.Recovery{Claim: *c})
	if done {
		m.rt.Fatalf("%s was recovered twice", c.ExecutionID)
	}
	if err != nil { // it ended well, or left no event
		m.code(err, journal.Conflict)
	}
}

func (m *machine) resolve(s *model) {
	id := m.draw("call", s.inState(journal.CallIsUnknown)...)
	then := journal.Then(m.draw("then", "continue", "stay"))
	now := m.now()
	_, err := m.store.ResolveCall(m.ctx, m.owner, id, store.CallResolution{Outcome: journal.CannotTell, Then: then})
	if s.calls[id].resolved {
		m.code(err, journal.Conflict)
		return
	}
	m.ok(err)
	s.calls[id].resolved = true
	m.seen["resolved"]++
	if last := len(s.unresolved()) == 0; last {
		switch {
		case then == journal.ThenStay && s.turn != "" && s.adopts():
			s.stopsNow = s.stopsNow || !s.interrupted       // a stop that waits for the boundary stays one
			s.held, s.interrupted, s.sent = true, true, nil // the claim ends it
		case then == journal.ThenStay && s.turn != "":
			s.sent = nil
			s.endTurn(false)
		case then == journal.ThenStay:
			s.held, s.sent = true, nil
		case s.turn == "" && !s.held && s.sends(): // that goes first
			m.seen["continued with what was sent"]++
		case s.turn == "" && !s.completed:
			m.continued(s)
		}
	}
	s.touch(now)
}

// continued starts the turn that the store has started.
func (m *machine) continued(s *model) {
	s.blocked, s.held = false, false
	if s.turn != "" || s.turns == 0 || s.completed {
		s.recoveries = 0
		return
	}
	s.startTurn(storetest.MustState(m.t, m.store, s.id).Turn.ID)
}

func (m *machine) end(s *model) {
	outcome := journal.Outcome(m.draw("outcome", "completed", "completed", "failed", "interrupted"))
	now := m.now()
	evs, released, err := m.store.EndTurn(m.ctx, s.claim, store.EndTurn{End: journal.TurnEnded{Outcome: outcome}, Actor: journal.Agent()})
	if outcome == journal.Completed && (len(s.steers()) > 0 || s.interrupted) {
		m.code(err, journal.Conflict)
		m.seen["steers wait, or a stop"]++
		return
	}
	m.ok(err)
	if evs[len(evs)-1].Kind != journal.KindTurnEnded {
		m.rt.Fatalf("the last event is %s", evs[len(evs)-1].Kind)
	}
	m.seen["ended"]++
	s.endTurn(outcome == journal.Completed)
	s.touch(now)
	m.gaveBack(s, released, !s.hasWork())
	s.uncertain, s.safe = false, s.claim != nil
}

func (m *machine) gaveBack(s *model, released, want bool) {
	m.rt.Helper()
	if released != want {
		m.rt.Fatalf("released: %v, the model says %v", released, want)
	}
	if released {
		s.dropClaim()
	}
}

func (m *machine) release(s *model) {
	head, _, err := m.store.Head(m.ctx, m.owner, s.id)
	m.ok(err)
	stale := m.flip("somebody added work")
	if stale {
		head--
	}
	released, err := m.store.Release(m.ctx, s.claim, head)
	if !stale && (s.effectInAir() || s.adopts()) {
		m.code(err, journal.Conflict)
		return
	}
	m.ok(err)
	m.gaveBack(s, released, !stale)
}

func (m *machine) goOn(s *model) {
	now := m.now()
	err := m.store.Continue(m.ctx, m.owner, s.id, nil)
	if len(s.unresolved()) > 0 || (!s.held && !s.blocked) {
		m.code(err, journal.Conflict)
		return
	}
	m.ok(err)
	m.seen["continued"]++
	m.continued(s)
	s.touch(now)
}

func (m *machine) interrupt(s *model) {
	mode := journal.InterruptMode(m.draw("mode", string(journal.InterruptNow), string(journal.InterruptBoundary)))
	now := m.now()
	err := m.store.RequestInterrupt(m.ctx, m.owner, s.id, mode)
	if s.turn == "" {
		m.code(err, journal.Conflict)
		return
	}
	m.ok(err)
	carriedOut := s.claim == nil && !s.adopts()
	sooner := mode == journal.InterruptNow && !s.stopsNow
	event := !s.interrupted || sooner || carriedOut || s.sends()
	s.interrupted, s.stopsNow = true, s.stopsNow || sooner
	if event {
		s.sent = nil // the last word counts
	}
	if carriedOut {
		s.endTurn(false)
	}
	if event {
		s.touch(now)
	}
}

// restart is the death of this folder's workers and a new start (LEA-11).
func (m *machine) restart(*model) {
	m.seen["restarted"]++
	m.ok(m.store.Close())
	m.store = m.db.OpenUnchecked(m.t)
	m.harness.store = m.store //nolint:staticcheck // both have one, and both must change
	m.setSkew(m.skew)
	m.newWorkers()
	want := int64(0)
	for _, s := range m.sessions {
		if s.claim != nil && s.claim.StateFolderID == m.folder {
			s.claim.ExpiresAt = 0
			want++
		}
	}
	n, err := m.store.ExpireFolder(m.ctx, m.folder, m.workers[0])
	m.ok(err)
	if n != want {
		m.rt.Fatalf("%d claims were expired, the model says %d", n, want)
	}
	m.sweep(nil)
}
