package seed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/store"
)

// The other worker's claims. It renews none, so a lease must outlast whoever
// looks: a third of it before its end a claim counts as not confirmed.
const (
	otherID     = "wrk_ELSEWHERE"
	otherFolder = "fld_elsewhere"
	otherLease  = 60 * time.Hour
	silent      = 40*time.Hour + 10*time.Minute // since when unconfirmed has heard nothing
	retryIn     = 20 * time.Hour
)

// otherWorker makes what a worker of another state folder would have left.
func (f *filling) otherWorker(ctx context.Context) (err error) {
	s, err := store.Open(ctx, store.Options{URL: f.r.Database, Admin: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	user, err := s.UserByEmail(ctx, Email)
	if err != nil {
		return err
	}
	marker, err := os.ReadFile(filepath.Join(f.r.Workspaces, ".holdfast-workspace"))
	if err != nil {
		return err
	}
	err = s.SeeWorker(ctx, store.Worker{ID: otherID, StateFolderID: otherFolder, Host: "worker-2.example", PID: 4711, Version: "seed", Places: 8, Running: 3, Agents: []store.Agent{}})
	if err != nil {
		return err
	}
	w := &elsewhere{f: f, s: s, owner: user.ID, marker: strings.TrimSpace(string(marker))}
	made := []func(context.Context) error{w.running, w.stopping, w.retrying, w.unconfirmed}
	if f.o.Large {
		made = append(made, w.manyCalls, w.manyEntries)
	}
	for _, do := range made {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// elsewhere is the other worker.
type elsewhere struct {
	f      *filling
	s      *store.Store
	owner  string
	marker string
}

// run is a session that the other worker has claimed, with its turn open.
type run struct {
	w     *elsewhere
	id    string
	turn  string
	claim *journal.Claim
}

func (w *elsewhere) claim(ctx context.Context, name string, state journal.ExecutionState, title string) (*run, error) {
	text := steps("Do it", "echo done")
	one, _, err := w.s.CreateSession(ctx, w.owner, rand.Text(), store.NewSession{
		Title: title, Agent: "runbook", Workspace: w.f.r.Workspaces, WorkspaceID: w.marker, Preset: "ask_writes", Prompt: &store.PromptInput{Text: text, Delivery: journal.Queue},
	})
	if err != nil {
		return nil, err
	}
	w.f.add(name, state, one.ID)
	r := &run{w: w, id: one.ID}
	r.claim, err = w.s.Claim(ctx, store.ClaimRequest{SessionID: one.ID, WorkerID: otherID, StateFolderID: otherFolder, Lease: otherLease})
	if err != nil || r.claim == nil {
		return nil, errors.Join(fmt.Errorf("claim %s", name), err)
	}
	if _, err := w.s.PromoteNext(ctx, r.claim); err != nil {
		return nil, err
	}
	fold, _, err := w.s.Fold(ctx, one.ID)
	if err != nil {
		return nil, err
	}
	r.turn = fold.State.Turn.ID
	return r, nil
}

// append writes what the worker would write; phase "" leaves the claim's.
func (r *run) append(ctx context.Context, phase journal.Phase, bodies ...journal.Body) error {
	return r.write(ctx, store.Append{Phase: phase}, bodies)
}

func (r *run) write(ctx context.Context, a store.Append, bodies []journal.Body) error {
	for _, b := range bodies {
		a.Drafts = append(a.Drafts, journal.Draft{ID: store.NewID("evt"), Actor: journal.Agent(), Body: b})
	}
	_, err := r.w.s.Append(ctx, r.claim, a)
	return err
}

// begun is a call that runs, from its step on.
func (r *run) begun(n int, command string, effect journal.Effect) (call string, bodies []journal.Body) {
	call = store.NewID("call")
	input, err := journal.Encode(map[string]string{"command": command, "shell": "sh"})
	if err != nil { // strings can be encoded
		panic(err)
	}
	key := fmt.Sprintf("seed/%d", n)
	return call, []journal.Body{
		&journal.StepStarted{TurnID: r.turn, Step: journal.Step{Key: key, Name: fmt.Sprintf("Step %d", n), Index: n, Of: n}},
		&journal.CallProposed{CallID: call, TurnID: r.turn, Key: key, Tool: "shell", Input: input, InputSHA256: journal.Hash(string(input)), Effect: effect},
		&journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule, Text: "shell *: allow"}},
	}
}

// deploys begins a command with an effect under a shim, which has said something.
func (r *run) deploys(ctx context.Context) error {
	call, bodies := r.begun(1, "deploy --all", journal.EffectEffect)
	said := "deploying part 1 of 3\n"
	a := store.Append{Phase: journal.PhaseUncertain, Spool: &store.Spool{CallID: call, N: 1, StateFolderID: otherFolder, ReadTo: int64(len(said))}}
	return r.write(ctx, a, append(bodies, &journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T(said)}))
}

func (w *elsewhere) running(ctx context.Context) error {
	r, err := w.claim(ctx, "running_elsewhere", journal.StateRunning, "Deploy on another host")
	if err != nil {
		return err
	}
	return r.deploys(ctx)
}

func (w *elsewhere) stopping(ctx context.Context) error {
	r, err := w.claim(ctx, "stopping", journal.StateStopping, "Stop on another host")
	if err == nil {
		err = r.deploys(ctx)
	}
	if err != nil {
		return err
	}
	return w.s.RequestInterrupt(ctx, w.owner, r.id, journal.InterruptBoundary)
}

// retrying waits for the second of three tries.
func (w *elsewhere) retrying(ctx context.Context) error {
	r, err := w.claim(ctx, "retrying", journal.StateRetrying, "Ask a model that is busy")
	if err != nil {
		return err
	}
	now, err := w.s.Now(ctx)
	if err != nil {
		return err
	}
	id := store.NewID("att")
	err = r.append(ctx, journal.PhaseSafe,
		&journal.AttemptPrepared{AttemptID: id, TurnID: r.turn, Model: "a-model", RequestSHA256: journal.Hash("request")},
		&journal.AttemptDispatched{AttemptID: id},
		&journal.AttemptFailed{AttemptID: id, Error: "429: the provider is busy", Retry: &journal.Retry{N: 2, Of: 3, At: now + retryIn.Milliseconds()}})
	if err != nil {
		return err
	}
	head, _, err := w.s.Head(ctx, w.owner, r.id)
	if err != nil {
		return err
	}
	released, err := w.s.Release(ctx, r.claim, head)
	if err == nil && !released {
		err = errors.New("the claim was not released")
	}
	return err
}

// unconfirmed was claimed long ago and not renewed since.
func (w *elsewhere) unconfirmed(ctx context.Context) error {
	w.s.Skew(-silent)
	defer w.s.Skew(0)
	r, err := w.claim(ctx, "unconfirmed", journal.StateUnconfirmed, "Deploy on a host that is silent")
	if err != nil {
		return err
	}
	return r.deploys(ctx)
}

// Sizes of the large sessions, and how much of one is appended at once.
const (
	manyCalls   = 2000
	manyEntries = 100_000
	batch       = 500
)

// manyCalls has a turn of many commands, each with a word of output.
func (w *elsewhere) manyCalls(ctx context.Context) error {
	w.f.say("a session of %d calls", manyCalls)
	r, err := w.claim(ctx, "ready_many_calls", journal.StateReady, "Two thousand commands")
	if err != nil {
		return err
	}
	var bodies []journal.Body
	for n := 1; n <= manyCalls; n++ {
		call, begun := r.begun(n, fmt.Sprintf("echo %d", n), journal.EffectRead)
		text, zero := fmt.Sprintf("%d\n", n), 0
		bodies = append(append(bodies, begun...), &journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T(text)},
			&journal.CallSettled{CallID: call, State: journal.CallSucceeded, ExitCode: &zero, OutputBytes: int64(len(text))})
		if len(bodies) >= batch || n == manyCalls {
			if err := r.append(ctx, "", bodies...); err != nil {
				return err
			}
			bodies = nil
		}
	}
	return r.completed(ctx)
}

// manyEntries has one command that has said very much, a line an entry.
func (w *elsewhere) manyEntries(ctx context.Context) error {
	w.f.say("a session of %d entries", manyEntries)
	r, err := w.claim(ctx, "ready_many_entries", journal.StateReady, "A hundred thousand entries")
	if err != nil {
		return err
	}
	call, bodies := r.begun(1, "watch-the-log", journal.EffectRead)
	var written int64
	for n := 8; n <= manyEntries-2; n++ { // 7 come before, the ends of call and turn after
		text := fmt.Sprintf("line %d of the log\n", n)
		bodies = append(bodies, &journal.CallOutput{CallID: call, Stream: "stdout", Offset: written, Text: journal.T(text)})
		written += int64(len(text))
		if len(bodies) >= batch {
			if err := r.append(ctx, "", bodies...); err != nil {
				return err
			}
			bodies = nil
		}
	}
	zero := 0
	if err := r.append(ctx, "", append(bodies, &journal.CallSettled{CallID: call, State: journal.CallSucceeded, ExitCode: &zero, OutputBytes: written})...); err != nil {
		return err
	}
	return r.completed(ctx)
}

func (r *run) completed(ctx context.Context) error {
	_, released, err := r.w.s.EndTurn(ctx, r.claim, store.EndTurn{Actor: journal.Server(), End: journal.TurnEnded{Outcome: journal.Completed}})
	if err == nil && !released {
		err = errors.New("the claim was not released")
	}
	return err
}
