package storetest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// Lease is the length of the leases that MustClaim takes.
const Lease = 30 * time.Second

// MustUser makes a user with a random address.
func MustUser(t testing.TB, s *store.Store) store.User {
	t.Helper()
	u, err := s.AddUser(t.Context(), strings.ToLower(rand.Text())+"@example.org", "")
	if err != nil {
		t.Fatalf("add a user: %v", err)
	}
	return u
}

// NewSession is a request for a session that every database takes.
func NewSession() store.NewSession {
	return store.NewSession{Title: "Try it", Agent: "runbook", Workspace: "/srv/work", WorkspaceID: "wsp_1", Preset: "ask_writes"}
}

// MustSession makes a session without a prompt.
func MustSession(t testing.TB, s *store.Store, owner string, with ...func(*store.NewSession)) store.Session {
	t.Helper()
	n := NewSession()
	for _, f := range with {
		f(&n)
	}
	out, _, err := s.CreateSession(t.Context(), owner, rand.Text(), n)
	if err != nil {
		t.Fatalf("create a session: %v", err)
	}
	return out
}

// MustPrompt submits a prompt under a key of its own.
func MustPrompt(t testing.TB, s *store.Store, owner, session, text string, delivery journal.Delivery) journal.Receipt {
	t.Helper()
	r, err := s.SubmitPrompt(t.Context(), owner, session, rand.Text(), store.PromptInput{Text: text, Delivery: delivery})
	if err != nil {
		t.Fatalf("submit %q: %v", journal.Cut(text, 40), err)
	}
	return r
}

// MustClaim takes the lease on a session for a worker, whose state folder is named after it.
func MustClaim(t testing.TB, s *store.Store, session, worker string) *journal.Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), store.ClaimRequest{SessionID: session, WorkerID: worker, StateFolderID: "fld_" + worker, Lease: Lease})
	if err != nil {
		t.Fatalf("claim %s: %v", session, err)
	}
	if c == nil {
		t.Fatalf("claim %s: there is no work, or somebody holds it", session)
	}
	return c
}

// Drafts gives bodies ids and the agent as their actor.
func Drafts(bodies ...journal.Body) []journal.Draft {
	out := make([]journal.Draft, 0, len(bodies))
	for _, b := range bodies {
		out = append(out, journal.Draft{ID: store.NewID("evt"), Actor: journal.Agent(), Body: b})
	}
	return out
}

// MustAppend writes events of a run; phase "" leaves the claim's as it is.
func MustAppend(t testing.TB, s *store.Store, c *journal.Claim, phase journal.Phase, bodies ...journal.Body) []journal.Event {
	t.Helper()
	evs, err := s.Append(t.Context(), c, store.Append{Drafts: Drafts(bodies...), Phase: phase})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return evs
}

// Run is a session with an open turn and the claim that runs it.
type Run struct {
	Owner   string
	Session string
	Worker  string
	Turn    string
	Prompt  journal.Receipt
	Claim   *journal.Claim
}

// MustRun makes a user, a session with one prompt, a claim of worker on it, and promotes the prompt.
func MustRun(t testing.TB, s *store.Store, worker string) *Run {
	t.Helper()
	owner := MustUser(t, s)
	r := &Run{Owner: owner.ID, Session: MustSession(t, s, owner.ID).ID, Worker: worker}
	r.Prompt = MustPrompt(t, s, r.Owner, r.Session, "do it", journal.Queue)
	r.Claim = MustClaim(t, s, r.Session, worker)
	r.Turn = MustPromote(t, s, r.Claim)
	return r
}

// MustPromote promotes the next prompt and gives the turn that it opened.
func MustPromote(t testing.TB, s *store.Store, c *journal.Claim) string {
	t.Helper()
	evs, err := s.PromoteNext(t.Context(), c)
	if err != nil {
		t.Fatalf("promote: %v", err)
	}
	for i := range evs {
		if body, err := evs[i].Decode(); err == nil {
			if b, ok := body.(*journal.TurnStarted); ok {
				return b.TurnID
			}
		}
	}
	t.Fatalf("promote: no turn was opened by %d events", len(evs))
	return ""
}

// Propose is the intent of a call of the run's turn.
func (r *Run) Propose(id string, effect journal.Effect) *journal.CallProposed {
	return &journal.CallProposed{
		CallID: id, TurnID: r.Turn, Key: "key-" + id, Tool: "shell", Input: []byte(`{"command":"echo hi"}`), InputSHA256: journal.Hash("echo hi"), Effect: effect,
	}
}

// Dispatch is the n-th dispatch of a call, allowed by a rule.
func Dispatch(id string, n int) *journal.CallDispatched {
	return &journal.CallDispatched{CallID: id, N: n, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule, ID: "1", Text: "allow shell *"}}
}

// Settle is the end of a call.
func Settle(id string, state journal.CallState) *journal.CallSettled {
	return &journal.CallSettled{CallID: id, State: state}
}

// Ask is a request for permission to run a call.
func Ask(id, call string) *journal.PermissionAsked {
	return &journal.PermissionAsked{
		ID: id, Tool: journal.ToolRef{CallID: call}, Permission: "shell", Resources: []string{"echo hi"}, Always: []string{},
		Digest: "d1", Metadata: []byte(`{"command":"echo hi"}`),
	}
}

// MustCall proposes a call and gives its id.
func (r *Run) MustCall(t testing.TB, s *store.Store, effect journal.Effect) string {
	t.Helper()
	id := store.NewID("call")
	MustAppend(t, s, r.Claim, "", r.Propose(id, effect))
	return id
}

// MustDispatched proposes and dispatches a call, as the runner does: in phase
// uncertain unless it only reads.
func (r *Run) MustDispatched(t testing.TB, s *store.Store, effect journal.Effect) string {
	t.Helper()
	id := r.MustCall(t, s, effect)
	var phase journal.Phase
	if effect != journal.EffectRead {
		phase = journal.PhaseUncertain
	}
	MustAppend(t, s, r.Claim, phase, Dispatch(id, 1))
	return id
}

// MustSpooled is MustDispatched for a command that outlives its server: how far its
// output was read is noted from the start.
func (r *Run) MustSpooled(t testing.TB, s *store.Store, effect journal.Effect) string {
	t.Helper()
	id := r.MustCall(t, s, effect)
	a := store.Append{Drafts: Drafts(Dispatch(id, 1)), Spool: &store.Spool{CallID: id, N: 1, StateFolderID: r.Claim.StateFolderID}}
	if effect != journal.EffectRead {
		a.Phase = journal.PhaseUncertain
	}
	if _, err := s.Append(t.Context(), r.Claim, a); err != nil {
		t.Fatalf("dispatch: %v", err)
	}
	return id
}

// MustAdopt loses the run while these calls run on, as their shims say.
func (r *Run) MustAdopt(t testing.TB, s *store.Store, calls ...string) {
	t.Helper()
	found := map[string]store.Found{}
	for _, id := range calls {
		found[id] = store.Found{Adopted: true}
	}
	MustFind(t, s, r.Claim, found)
}

// MustFind expires a claim and recovers it by what the shims of its calls say.
func MustFind(t testing.TB, s *store.Store, c *journal.Claim, found map[string]store.Found) {
	t.Helper()
	if err := s.ExpireClaim(t.Context(), c); err != nil {
		t.Fatalf("expire: %v", err)
	}
	done, err := s.Recover(t.Context(), store.Recovery{Claim: MustLoad(t, s, c), Found: found})
	if err != nil || !done {
		t.Fatalf("recover: %v, %v", done, err)
	}
}

// MustAsk proposes a call, asks for it, and parks: the claim is released.
func (r *Run) MustAsk(t testing.TB, s *store.Store) (call, request string) {
	t.Helper()
	call, request = r.MustCall(t, s, journal.EffectEffect), store.NewID("per")
	evs := MustAppend(t, s, r.Claim, "", Ask(request, call))
	released, err := s.Release(t.Context(), r.Claim, evs[0].Seq)
	if err != nil || !released {
		t.Fatalf("park: %v, %v", released, err)
	}
	return call, request
}

// MustUnknown loses the run with an effect in the air, and gives the call that nobody knows the end of.
func (r *Run) MustUnknown(t testing.TB, s *store.Store) string {
	t.Helper()
	id := r.MustDispatched(t, s, journal.EffectEffect)
	MustLose(t, s, r.Claim)
	return id
}

// MustLose expires a claim and recovers it.
func MustLose(t testing.TB, s *store.Store, c *journal.Claim) {
	t.Helper()
	MustFind(t, s, c, nil)
}

// MustLoad gives an expired claim as a sweeper sees it.
func MustLoad(t testing.TB, s *store.Store, c *journal.Claim) journal.Claim {
	t.Helper()
	all, err := s.ExpiredClaims(t.Context(), journal.Claim{}, 1000)
	if err != nil {
		t.Fatalf("list expired claims: %v", err)
	}
	for _, e := range all {
		if e.ExecutionID == c.ExecutionID {
			return e
		}
	}
	t.Fatalf("the claim %s has not expired", c.ExecutionID)
	return journal.Claim{}
}

// MustState reads the folded state of a session.
func MustState(t testing.TB, s *store.Store, session string) journal.State {
	t.Helper()
	f, _, err := s.Fold(context.WithoutCancel(t.Context()), session)
	if err != nil {
		t.Fatalf("fold %s: %v", session, err)
	}
	return f.State
}

// Events gives the whole journal of a session.
func Events(t testing.TB, s *store.Store, session string) []journal.Event {
	t.Helper()
	var out []journal.Event
	for after := int64(0); ; after = out[len(out)-1].Seq {
		page, err := s.Since(context.WithoutCancel(t.Context()), session, after)
		if err != nil {
			t.Fatalf("read %s: %v", session, err)
		}
		out = append(out, page...)
		if len(page) < store.MaxEvents {
			return out
		}
	}
}

// Kinds gives the kinds of events, in order.
func Kinds(evs []journal.Event) []journal.Kind {
	out := make([]journal.Kind, 0, len(evs))
	for i := range evs {
		out = append(out, evs[i].Kind)
	}
	return out
}

// CountKind counts the events of a kind.
func CountKind(evs []journal.Event, kind journal.Kind) int {
	n := 0
	for i := range evs {
		if evs[i].Kind == kind {
			n++
		}
	}
	return n
}

// Body decodes the last event of a body's kind, or fails.
func Body[T journal.Body](t testing.TB, evs []journal.Event) T {
	t.Helper()
	for i := len(evs) - 1; i >= 0; i-- {
		body, err := evs[i].Decode()
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := body.(T); ok {
			return b
		}
	}
	var none T
	t.Fatalf("no event with a body of type %T among %v", none, Kinds(evs))
	return none
}

// WantCode fails unless err carries the code.
func WantCode(t testing.TB, err error, code journal.Code) {
	t.Helper()
	if got := journal.CodeOf(err); got != code {
		t.Fatalf("got the code %q (%v), want %q", got, err, code)
	}
}

// WantSlug fails unless err carries the stable name.
func WantSlug(t testing.TB, err error, slug string) {
	t.Helper()
	var e *journal.Error
	if !asError(err, &e) || e.Slug() != slug {
		t.Fatalf("got the error %v, want %q", err, slug)
	}
}
