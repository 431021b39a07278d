package store_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// servers are two stores on one Postgres whose first writers are held, so that
// what is queued becomes one batch in each.
type servers struct {
	t    *testing.T
	ss   [2]*store.Store
	at   string // a session of the writer that is held
	free chan struct{}
	held chan error
	done chan error
	n    int
}

func holdBoth(t *testing.T, a, b *store.Store, at string) *servers {
	t.Helper()
	s := &servers{t: t, ss: [2]*store.Store{a, b}, at: at, free: make(chan struct{}), held: make(chan error, 2), done: make(chan error, 16)}
	for _, one := range s.ss {
		ready := make(chan struct{})
		go func() {
			s.held <- one.Write(t.Context(), at, func(context.Context, store.Tx) error {
				close(ready)
				<-s.free
				return nil
			})
		}()
		<-ready
	}
	return s
}

// queue puts one method behind what waits for the held writer of a server.
func (s *servers) queue(server, place int, session string, fn func(context.Context, store.Tx) error) {
	s.n++
	go func() { s.done <- s.ss[server].Write(s.t.Context(), session, fn) }()
	s.ss[server].AwaitQueued(s.at, place)
}

func (s *servers) release() {
	s.t.Helper()
	close(s.free)
	var errs []error
	for range s.n {
		errs = append(errs, <-s.done)
	}
	must(s.t, errors.Join(append(errs, <-s.held, <-s.held)...))
}

// meet lets two transactions wait for each other, but not for long: where locks
// are taken in one order the other can't come.
type meet struct{ here [2]chan struct{} }

func newMeet() *meet { return &meet{[2]chan struct{}{make(chan struct{}), make(chan struct{})}} }

func (m *meet) arrive(i int) {
	select {
	case <-m.here[i]: // a second run, after a rollback
	default:
		close(m.here[i])
	}
	select {
	case <-m.here[1-i]:
	case <-time.After(200 * time.Millisecond):
	}
}

func lockSession(ctx context.Context, x store.Tx, id string) error {
	var got string
	return x.Get(ctx, &got, "SELECT id FROM session WHERE id = ? FOR NO KEY UPDATE", id)
}

// Two servers have the same two sessions in their batches, queued the other way
// round. Each batch is ordered by session, so one waits for the other and no
// method is run twice.
func TestLockOrder_BatchesOfTwoServers(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *storetest.DB) {
		a, b := db.Open(t), db.Open(t)
		ids := sameWriter(t, a, 2, "")
		s := holdBoth(t, a, b, ids[0])
		var runs atomic.Int32
		m := newMeet()
		method := func(server int, id string) func(context.Context, store.Tx) error {
			return func(ctx context.Context, x store.Tx) error {
				runs.Add(1)
				err := lockSession(ctx, x, id)
				m.arrive(server)
				return err
			}
		}
		s.queue(0, 1, ids[0], method(0, ids[0]))
		s.queue(0, 2, ids[1], method(0, ids[1]))
		s.queue(1, 1, ids[1], method(1, ids[1]))
		s.queue(1, 2, ids[0], method(1, ids[0]))
		s.release()
		if n := runs.Load(); n != 4 {
			t.Errorf("4 methods were run %d times: their batches were rolled back", n)
		}
	})
}

// A renewal locks claims and nothing else: in one transaction with a method that
// wants a session's row it would meet a takeover, which locks the session first.
// proves LEA-3 LEA-9
func TestLockOrder_RenewalBesideATakeover(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *storetest.DB) {
		a, b := db.Open(t), db.Open(t)
		session := sameWriter(t, a, 1, "")[0]
		s := holdBoth(t, a, b, session)
		var runs atomic.Int32
		m := newMeet()
		s.queue(0, 1, "", func(ctx context.Context, x store.Tx) error {
			runs.Add(1)
			err := x.Exec(ctx, "INSERT INTO meta (key, value) VALUES ('claim', 'a') ON CONFLICT (key) DO UPDATE SET value = 'a'")
			m.arrive(0)
			return err
		})
		s.queue(0, 2, session, func(ctx context.Context, x store.Tx) error {
			runs.Add(1)
			return lockSession(ctx, x, session)
		})
		s.queue(1, 1, session, func(ctx context.Context, x store.Tx) error {
			runs.Add(1)
			err := lockSession(ctx, x, session)
			m.arrive(1)
			if err != nil {
				return err
			}
			return x.Exec(ctx, "INSERT INTO meta (key, value) VALUES ('claim', 'b') ON CONFLICT (key) DO UPDATE SET value = 'b'")
		})
		s.release()
		if n := runs.Load(); n != 3 {
			t.Errorf("3 methods were run %d times: a transaction was rolled back", n)
		}
	})
}

// A failed drain's claim is expired with the session's row in hand: in a batch
// that goes on to that row, a claim that is locked alone would turn the order
// around, and a takeover on another server could wait for it for ever.
func TestLockOrder_ExpireClaimTakesTheSessionFirst(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		raw := db.SQL(t)
		holder, err := raw.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = holder.ExecContext(t.Context(), "SELECT id FROM session WHERE id = $1 FOR NO KEY UPDATE", r.Session)
		must(t, err)
		storetest.WantCode(t, s.ExpireClaim(t.Context(), r.Claim), journal.Unavailable)
		must(t, holder.Rollback())
		must(t, insist(func() error { return s.ExpireClaim(t.Context(), r.Claim) }))
		storetest.MustLoad(t, s, r.Claim)
	})
}

// sameWriter makes sessions that one writer takes: that of the session at, sorted.
func sameWriter(t *testing.T, s *store.Store, n int, at string) []string {
	t.Helper()
	owner := storetest.MustUser(t, s).ID
	var ids []string
	for len(ids) < n {
		if id := storetest.MustSession(t, s, owner).ID; s.WriterOf(id) == s.WriterOf(at) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// onPostgres runs a test of what SQLite, which has one writer, can't get wrong.
func onPostgres(t *testing.T, body func(t *testing.T, db *storetest.DB)) {
	t.Helper()
	for _, name := range storetest.Databases() {
		if name != "postgres" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t, storetest.New(t, name))
		})
	}
}

// The first try of an append is still in its COMMIT, as far as the second can
// tell, when that looks for its events: it waits, and finds them.
// proves COO-10
func TestAppend_RetriedWhileItCommits(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *storetest.DB) {
		a, b := db.Open(t), db.Open(t)
		raw := db.SQL(t)
		r := storetest.MustRun(t, a, "w")
		tries := store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{})}
		written, commit := make(chan struct{}), make(chan struct{})
		s := holdBoth(t, a, b, r.Session)
		s.n++
		go func() {
			_, err := a.Append(t.Context(), r.Claim, tries)
			s.done <- err
		}()
		a.AwaitQueued(r.Session, 1)
		s.queue(0, 2, r.Session, func(context.Context, store.Tx) error { // in the same batch, after it
			close(written)
			<-commit
			return nil
		})
		again := make(chan error, 1)
		var found []journal.Event
		go func() {
			<-written
			retried := tries
			retried.Retried = true
			var err error
			found, err = b.Append(t.Context(), r.Claim, retried)
			again <- err
		}()
		go func() {
			defer close(commit)
			for t.Context().Err() == nil {
				var waits int
				if err := raw.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waits); err != nil || waits > 0 {
					return
				}
			}
		}()
		s.release()
		must(t, <-again)
		if n := storetest.CountKind(storetest.Events(t, a, r.Session), journal.KindPlanUpdated); n != 1 || len(found) != 1 {
			t.Errorf("%d events in the journal, %d found", n, len(found))
		}
	})
}
