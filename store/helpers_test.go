package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantSame fails unless the rows of all tables are as many as before.
func wantSame(t *testing.T, before, after map[string]int64) {
	t.Helper()
	for name, n := range before {
		if after[name] != n {
			t.Errorf("%s has %d rows, had %d", name, after[name], n)
		}
	}
}

// wantKinds fails unless the kinds of the events are these.
func wantKinds(t *testing.T, evs []journal.Event, want ...journal.Kind) {
	t.Helper()
	if got := storetest.Kinds(evs); !slices.Equal(got, want) {
		t.Fatalf("events\n got %v\nwant %v", got, want)
	}
}

// insist repeats what the journal was too busy for, as a client does: on a slow
// disk a row may be locked for longer than the second that Postgres waits.
func insist(fn func() error) error {
	for deadline := time.Now().Add(patience); ; {
		if err := fn(); !journal.Is(err, journal.Unavailable) || time.Now().After(deadline) {
			return err
		}
	}
}

// runnable gives the ids of the sessions that have work and no claim, in their order, by pages of two.
func runnable(t testing.TB, s *store.Store) []string {
	t.Helper()
	var ids []string
	for _, b := range allPages(t, s.Runnable) {
		ids = append(ids, b.ID)
	}
	return ids
}

// allPages goes through a list as a sweep does, by pages of two.
func allPages[T any](t testing.TB, list func(ctx context.Context, after T, limit int) ([]T, error)) []T {
	t.Helper()
	var out []T
	for {
		var last T
		if len(out) > 0 {
			last = out[len(out)-1]
		}
		page, err := list(t.Context(), last, 2)
		must(t, err)
		if out = append(out, page...); len(page) < 2 {
			return out
		}
	}
}

// together runs n functions at once, each until it has an answer, and gives their errors.
func together(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = insist(func() error { return fn(i) })
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func noErrors(t *testing.T, errs []error) {
	t.Helper()
	must(t, errors.Join(errs...))
}

// heard waits for a signal.
func heard(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("nothing was heard of %s", what)
	}
}

// silent fails if a signal is there.
func silent(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		t.Fatalf("a signal came: %s", what)
	default:
	}
}

// hearWork waits until a session is named as having work.
func hearWork(t *testing.T, sub *store.WorkSub, session string) {
	t.Helper()
	for {
		heard(t, sub.C(), "work in "+session)
		if ids, _ := sub.Take(); slices.Contains(ids, session) {
			return
		}
	}
}

func claimRequest(session, worker string) store.ClaimRequest {
	return store.ClaimRequest{SessionID: session, WorkerID: worker, StateFolderID: "fld_" + worker, Lease: storetest.Lease}
}

func queue(text string) store.PromptInput {
	return store.PromptInput{Text: text, Delivery: journal.Queue}
}
