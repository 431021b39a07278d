package store_test

import (
	"fmt"
	"maps"
	"slices"

	"holdfast/journal"
	"holdfast/store"
)

// model is what the rules say of one session, in a few lines and without SQL.
type model struct {
	id          string
	admitted    []mPrompt
	prompts     map[string]journal.InputState
	turn        string // the open one
	turns       int
	completed   bool // the last turn's outcome
	held        bool
	interrupted bool
	sent        []string // prompts that the last turn was, or is to be, stopped for
	stopsNow    bool     // by an interrupt that doesn't wait for a boundary
	blocked     bool
	recoveries  int
	calls       map[string]*mCall
	claim       *journal.Claim // as it is now
	uncertain   bool           // its phase
	safe        bool
	old         []*journal.Claim
	runnableAt  int64
}

type mPrompt struct {
	id    string
	steer bool
}

type mCall struct {
	effect   journal.Effect
	state    journal.CallState
	n        int
	resolved bool
	happened int    // how often the world saw it
	keeper   string // the folder under whose shim it runs; "": none
	readTo   int64  // of what that keeps
	adopted  string // by the workers of a folder
}

func newModel(id string) *model {
	return &model{id: id, prompts: map[string]journal.InputState{}, calls: map[string]*mCall{}}
}

func (m *model) inState(states ...journal.CallState) (ids []string) {
	for id, c := range m.calls {
		if slices.Contains(states, c.state) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (m *model) unresolved() []string {
	return slices.DeleteFunc(m.inState(journal.CallIsUnknown), func(id string) bool { return m.calls[id].resolved })
}

func (m *model) effectInAir() bool {
	return slices.ContainsFunc(m.inState(journal.CallIsDispatched), func(id string) bool { return m.calls[id].effect == journal.EffectEffect })
}

// spooled are the calls that run under a shim where the claim's worker is, as far as the journal knows.
func (m *model) spooled() []string {
	return slices.DeleteFunc(m.inState(journal.CallIsDispatched), func(id string) bool { return m.calls[id].keeper != m.claim.StateFolderID })
}

func (m *model) adopts() bool {
	return slices.ContainsFunc(m.inState(journal.CallIsDispatched), func(id string) bool { return m.calls[id].adopted != "" })
}

// work is COO-2, without retries and requests.
func (m *model) work() bool {
	switch {
	case m.turn != "" && m.interrupted, m.adopts():
		return true
	case m.held, m.blocked, len(m.unresolved()) > 0:
		return false
	}
	return m.turn != "" || len(m.admitted) > 0
}

// touch is what each event does to the time since when there is work.
func (m *model) touch(now int64) {
	switch {
	case !m.work():
		m.runnableAt = 0
	case m.runnableAt == 0 || m.runnableAt > now:
		m.runnableAt = now
	}
}

// slack is what passes between the model's look at the clock and the store's.
const slack = 60_000

// hasWork: nothing in this model waits for its time, so a clock that is set back makes nobody wait.
func (m *model) hasWork() bool { return m.runnableAt > 0 }

func (m *model) expired(now int64) bool { return m.claim != nil && m.claim.ExpiresAt <= now+slack }

func (m *model) dropClaim() {
	m.old = append(m.old, m.claim)
	m.claim, m.uncertain, m.safe = nil, false, false
}

// recover is REC-2 to REC-4, REC-6, REC-10 and REC-11; found is what the shims of
// its calls say.
func (m *model) recover(now int64, found map[string]store.Found) {
	step, folder := !m.safe, m.claim.StateFolderID
	m.dropClaim()
	adopts, settles := false, false
	for _, id := range m.inState(journal.CallIsDispatched) {
		c := m.calls[id]
		switch f := found[id]; {
		case f.Adopted:
			c.adopted, adopts = folder, true
		case f.Settled != nil:
			c.state = f.Settled.State
			settles = settles || c.state != journal.CallCancelled
		case c.effect == journal.EffectEffect:
			c.state = journal.CallIsUnknown
		default:
			c.adopted = "" // let go
		}
	}
	switch {
	case settles:
		m.recoveries = 0
	case step && !adopts:
		m.recoveries++
	}
	m.carryOut()
	if m.recoveries >= journal.MaxRecoveries && !m.adopts() {
		m.blocked = true
	}
	m.touch(now)
}

// carryOut is REC-6: nobody else is there to carry an interrupt out.
func (m *model) carryOut() {
	if m.turn != "" && m.interrupted && !m.adopts() {
		m.endTurn(false)
	}
}

// forsake is what becomes of what a folder adopted, once none of its workers lives.
func (m *model) forsake(folder string) {
	left := false
	for _, id := range m.inState(journal.CallIsDispatched) {
		c := m.calls[id]
		if c.adopted == "" || c.adopted == folder {
			continue
		}
		c.adopted, left = "", true
		if c.effect == journal.EffectEffect {
			c.state = journal.CallIsUnknown
		}
	}
	if left {
		m.carryOut()
	}
}

func (m *model) endTurn(completed bool) {
	m.blocked = false // nothing is parked any more
	for _, id := range m.inState(journal.CallIsProposed, journal.CallIsDispatched) {
		c := m.calls[id]
		if c.state == journal.CallIsDispatched && (c.effect != journal.EffectRead || c.adopted != "") {
			c.state = journal.CallIsUnknown
		} else {
			c.state = journal.CallCancelled
		}
	}
	m.turn, m.interrupted, m.stopsNow, m.recoveries = "", false, false, 0
	m.completed, m.held = completed, !completed && !m.sends()
}

// sends reports whether a prompt waits that the turn was stopped for (PRO-5).
func (m *model) sends() bool {
	return slices.ContainsFunc(m.sent, func(id string) bool { return m.prompts[id] == journal.InputAdmitted })
}

func (m *model) startTurn(id string) {
	m.turn, m.held, m.recoveries, m.sent = id, false, 0, nil
	m.turns++
}

func (m *model) forget(id string) {
	m.admitted = slices.DeleteFunc(m.admitted, func(p mPrompt) bool { return p.id == id })
}

func (m *model) steers() (ids []string) {
	for _, p := range m.admitted {
		if p.steer {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// differs says how the store's state differs from the model, or "".
func (m *model) differs(st *journal.State, claim *journal.Claim) string {
	var admitted, wantAdmitted []string
	for _, w := range st.Admitted {
		admitted = append(admitted, w.ID)
	}
	for _, p := range m.admitted {
		wantAdmitted = append(wantAdmitted, p.id)
	}
	calls, wantCalls := map[string]string{}, map[string]string{}
	for _, c := range st.Calls {
		calls[c.ID] = string(c.State) + " " + c.Adopted
	}
	for _, id := range m.inState(journal.CallIsProposed, journal.CallIsDispatched) {
		wantCalls[id] = string(m.calls[id].state) + " " + m.calls[id].adopted
	}
	unknown := slices.Sorted(slices.Values(st.UnknownCalls))
	turn, exec, wantExec := "", "", ""
	if st.TurnOpen() {
		turn = st.Turn.ID
	}
	if claim != nil {
		exec = claim.ExecutionID
	}
	if m.claim != nil {
		wantExec = m.claim.ExecutionID
	}
	switch {
	case turn != m.turn:
		return fmt.Sprintf("the open turn is %q, the model's %q", turn, m.turn)
	case st.Held != m.held:
		return fmt.Sprintf("held is %v, the model's %v", st.Held, m.held)
	case (st.Blocked != nil) != m.blocked:
		return fmt.Sprintf("blocked is %v, the model's %v", st.Blocked != nil, m.blocked)
	case (st.TurnOpen() && st.Interrupt != nil) != m.interrupted:
		return fmt.Sprintf("interrupted is %v, the model's %v", st.Interrupt != nil, m.interrupted)
	case st.Recoveries != m.recoveries:
		return fmt.Sprintf("%d recoveries, the model's %d", st.Recoveries, m.recoveries)
	case !slices.Equal(admitted, wantAdmitted):
		return fmt.Sprintf("%v wait, the model's %v", admitted, wantAdmitted)
	case !maps.Equal(calls, wantCalls):
		return fmt.Sprintf("open calls are %v, the model's %v", calls, wantCalls)
	case !slices.Equal(unknown, m.unresolved()):
		return fmt.Sprintf("unknown are %v, the model's %v", unknown, m.unresolved())
	case exec != wantExec:
		return fmt.Sprintf("the claim is %q, the model's %q", exec, wantExec)
	case (st.RunnableAt > 0) != m.work():
		return fmt.Sprintf("runnable at %d, but work is %v", st.RunnableAt, m.work())
	}
	return ""
}
