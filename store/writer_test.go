package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// batch runs methods as one group commit: the writer is held while they queue.
func batch(t *testing.T, s *store.Store, session string, methods ...func() error) []error {
	t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	holder := make(chan error, 1)
	go func() {
		holder <- s.Write(t.Context(), session, func(context.Context, store.Tx) error {
			close(held)
			<-free
			return nil
		})
	}()
	<-held
	errs := make([]error, len(methods))
	done := make(chan struct{}, len(methods))
	for i, m := range methods {
		go func() {
			errs[i] = m()
			done <- struct{}{}
		}()
	}
	s.AwaitQueued(session, len(methods))
	close(free)
	for range methods {
		<-done
	}
	must(t, <-holder)
	return errs
}

// proves JRN-2 ADM-4
func TestGroupCommit_RefusalsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		storetest.MustPrompt(t, s, owner, session, "first", journal.Queue)
		ok := func(key string) func() error {
			return func() error {
				_, err := s.SubmitPrompt(t.Context(), owner, session, key, queue("same"))
				return err
			}
		}
		panics := func() error {
			return s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error {
				must(t, x.Exec(ctx, "UPDATE session SET next_seq = next_seq + 7 WHERE id = ?", session))
				panic("a fault")
			})
		}
		refused := func() error {
			return s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error {
				must(t, x.Exec(ctx, "UPDATE session SET next_seq = next_seq + 3 WHERE id = ?", session))
				return journal.Errorf(journal.Conflict, "no")
			})
		}
		constraint := func() error {
			return s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error {
				must(t, x.Exec(ctx, "UPDATE session SET next_seq = next_seq + 5 WHERE id = ?", session))
				return x.Exec(ctx, "INSERT INTO receipt SELECT * FROM receipt WHERE session_id = ?", session)
			})
		}
		errs := batch(t, s, session, ok("a"), panics, ok("b"), refused, ok("a"), constraint, ok("c"))
		for _, i := range []int{0, 2, 4, 6} {
			must(t, errs[i])
		}
		storetest.WantCode(t, errs[1], journal.Internal)
		storetest.WantCode(t, errs[3], journal.Conflict)
		if errs[5] == nil {
			t.Error("the constraint was taken")
		}
		evs := storetest.Events(t, s, session)
		if n := storetest.CountKind(evs, journal.KindPromptAdmitted); n != 4 || evs[len(evs)-1].Seq != 5 {
			t.Errorf("%d prompts, the last is #%d", n, evs[len(evs)-1].Seq)
		}
	})
}

// proves ADM-9 ADM-1
func TestGroupCommit_FailedStatementHurtsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		runs := 0
		errs := batch(t, s, session,
			func() error { _, err := s.SubmitPrompt(t.Context(), owner, session, "a", queue("x")); return err },
			func() error {
				return s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error {
					return x.Exec(ctx, "SELECT nothing FROM nowhere") // no refusal: the batch is undone and run one by one
				})
			},
			func() error {
				return s.Write(t.Context(), session, func(_ context.Context, x store.Tx) error {
					runs++
					x.Wake(session)
					return nil
				})
			},
			func() error { _, err := s.SubmitPrompt(t.Context(), owner, session, "b", queue("x")); return err })
		must(t, errors.Join(errs[0], errs[2], errs[3]))
		if errs[1] == nil || runs < 1 {
			t.Errorf("got %v after %d runs", errs[1], runs)
		}
		wantKinds(t, storetest.Events(t, s, session), journal.KindSessionCreated, journal.KindPromptAdmitted, journal.KindPromptAdmitted)
	})
}

// breaksCommit gives a method that lets the COMMIT of its batch fail.
func breaksCommit(t *testing.T, db *storetest.DB, s *store.Store, session string) func() error {
	t.Helper()
	if db.Name == "postgres" {
		raw := db.SQL(t)
		db.MustExec(t, raw, "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$")
		db.MustExec(t, raw, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON meta DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()")
		t.Cleanup(func() { db.MustExec(t, raw, "DROP FUNCTION refuse CASCADE") })
	}
	return func() error {
		return s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error {
			if db.Name == "postgres" {
				return x.Exec(ctx, "INSERT INTO meta (key, value) VALUES ('x', 'y')")
			}
			return errors.Join(x.Raw(ctx, "PRAGMA defer_foreign_keys = 1"), x.Exec(ctx, "INSERT INTO blob (session_id, sha256, data) VALUES ('none', 'x', 'y')"))
		})
	}
}

func TestGroupCommit_FailedCommitIsUnknownForAll(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		breaks := breaksCommit(t, db, s, session)
		submit := func() error { _, err := s.SubmitPrompt(t.Context(), owner, session, "a", queue("x")); return err }
		for _, err := range batch(t, s, session, submit, submit, breaks, submit) { // two of them are replays of what isn't there
			storetest.WantSlug(t, err, "commit-unknown")
		}
		must(t, submit())
		wantKinds(t, storetest.Events(t, s, session), journal.KindSessionCreated, journal.KindPromptAdmitted)
	})
}

func TestWrite_CallersContextEndsNobody(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		ctx, cancel := context.WithCancel(t.Context())
		errs := batch(t, s, session,
			func() error { _, err := s.SubmitPrompt(ctx, owner, session, "a", queue("x")); return err },
			func() error { _, err := s.SubmitPrompt(t.Context(), owner, session, "b", queue("x")); return err },
			func() error {
				return s.Write(t.Context(), session, func(context.Context, store.Tx) error { cancel(); return nil })
			})
		must(t, errors.Join(errs...)) // what was queued is written, and its answer is known
		if _, err := s.SubmitPrompt(ctx, owner, session, "c", queue("x")); !journal.Is(err, journal.Unavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestClose_WritesWhatIsQueued(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		started := make(chan struct{}, 40)
		results := make(chan string, 40)
		for i := range 40 {
			go func() {
				started <- struct{}{}
				key := fmt.Sprint("k", i)
				_, err := s.SubmitPrompt(context.Background(), owner, session, key, queue("x"))
				if err != nil && !journal.Is(err, journal.Unavailable) {
					t.Errorf("got %v", err)
				}
				if err != nil {
					key = ""
				}
				results <- key
			}()
		}
		for range 40 {
			<-started
		}
		must(t, s.Close())
		must(t, s.Close()) // idempotent
		var acked []string
		for range 40 {
			if key := <-results; key != "" {
				acked = append(acked, key)
			}
		}
		again := db.Open(t)
		for _, key := range acked {
			if _, err := again.Receipts(t.Context(), owner, key); err != nil {
				t.Errorf("%s was acknowledged and is gone: %v", key, err)
			}
		}
		for name, method := range map[string]func() error{
			"a write":           func() error { _, err := s.SubmitPrompt(t.Context(), owner, session, "late", queue("x")); return err },
			"a read":            func() error { _, err := s.Session(t.Context(), owner, session); return err },
			"a kept statement":  func() error { _, _, err := s.TokenUser(t.Context(), "hft_x"); return err },
			"the clock":         func() error { return s.Ping(t.Context()) },
			"a whole read":      func() error { _, err := s.Verify(t.Context(), store.VerifyOptions{}); return err },
			"a read and a door": func() error { _, err := s.WithdrawPrompt(t.Context(), owner, "inp_1"); return err },
		} {
			if err := method(); !journal.Is(err, journal.Unavailable) {
				t.Errorf("a closed store answers %s with %v", name, err)
			}
		}
	})
}

// proves LEA-1 JRN-2 COO-10
func TestLockOrder_NoDeadlock(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, name)
			ss := []*store.Store{db.Open(t), db.Open(t)}
			raw := db.SQL(t)
			before := deadlocks(t, db)
			owner := storetest.MustUser(t, ss[0]).ID
			var sessions []string
			for range 12 {
				sessions = append(sessions, storetest.MustSession(t, ss[0], owner).ID)
			}
			const rounds = 12
			work := func(i int) error {
				s, worker := ss[i%2], fmt.Sprintf("w%d", i%2)
				var errs []error
				for n := range rounds {
					session := sessions[(i*5+n*7)%len(sessions)]
					if _, err := s.SubmitPrompt(t.Context(), owner, session, fmt.Sprintf("%d-%d", i, n), queue("x")); err != nil {
						errs = append(errs, err)
					}
					c, err := s.Claim(t.Context(), claimRequest(session, worker))
					errs = append(errs, err)
					if c == nil {
						continue
					}
					_, err = s.PromoteNext(t.Context(), c)
					errs = append(errs, stale(err))
					_, err = s.Append(t.Context(), c, store.Append{Drafts: storetest.Drafts(&journal.PlanUpdated{}), Phase: journal.PhaseUncertain})
					errs = append(errs, stale(err))
					_, err = s.RenewClaims(t.Context(), worker, []string{c.ExecutionID}, storetest.Lease)
					errs = append(errs, err, s.ExpireClaim(t.Context(), c))
				}
				return errors.Join(errs...)
			}
			sweep := func(i int) error {
				s, worker := ss[i%2], fmt.Sprintf("w%d", i%2)
				var errs []error
				for range rounds {
					expired, err := s.ExpiredClaims(t.Context(), journal.Claim{}, 50)
					errs = append(errs, err)
					var mine []string
					for _, c := range expired {
						_, err := s.Recover(t.Context(), store.Recovery{Claim: c})
						if !journal.Is(err, journal.Conflict) {
							errs = append(errs, err)
						}
						mine = append(mine, c.ExecutionID)
					}
					_, err = s.RenewClaims(t.Context(), worker, mine, storetest.Lease)
					_, ferr := s.ExpireFolder(t.Context(), "fld_"+worker, "none")
					errs = append(errs, err, ferr)
				}
				return errors.Join(errs...)
			}
			noErrors(t, together(12, func(i int) error {
				if i >= 8 {
					return sweep(i)
				}
				return work(i)
			}))
			if after := deadlocks(t, db); after != before {
				t.Errorf("%d deadlocks", after-before)
			}
			if n := db.Count(t, raw, "SELECT count(*) FROM event"); n < 12 {
				t.Errorf("%d events", n)
			}
		})
	}
}

// stale leaves out what a run is told when somebody else took its session.
func stale(err error) error {
	if journal.Is(err, journal.StaleClaim) {
		return nil
	}
	return err
}

func deadlocks(t *testing.T, db *storetest.DB) int64 {
	t.Helper()
	if db.Name == "sqlite" {
		return 0
	}
	return db.Count(t, db.SQL(t), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
}

// That the disk is full is known from the last write, until one is taken again.
//
// proves ADM-9
func TestFull(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		fill := "DO $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$"
		if db.Name == "sqlite" {
			fill = "CREATE TABLE filler AS SELECT randomblob(100000)"
			limit := fmt.Sprintf("PRAGMA max_page_count = %d", db.Count(t, db.SQL(t), "PRAGMA page_count"))
			must(t, s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error { return x.Raw(ctx, limit) }))
		}
		if s.Full() {
			t.Fatal("full before a write was refused")
		}
		err := s.Write(t.Context(), session, func(ctx context.Context, x store.Tx) error { return x.Raw(ctx, fill) })
		storetest.WantCode(t, err, journal.Unavailable)
		if !s.Full() || !store.NoRoom(err) {
			t.Errorf("full: %v, by its error: %v, after %v", s.Full(), store.NoRoom(err), err)
		}
		_, err = s.SubmitPrompt(t.Context(), owner, "ses_none", "key", store.PromptInput{Text: "x", Delivery: journal.Queue}) // refused for itself
		storetest.WantCode(t, err, journal.NotFound)
		must(t, s.Write(t.Context(), session, func(context.Context, store.Tx) error { return nil })) // needs no room
		if !s.Full() {
			t.Error("not full any more, though nothing was written")
		}
		_, err = s.SubmitPrompt(t.Context(), owner, session, "key", store.PromptInput{Text: "x", Delivery: journal.Queue})
		must(t, err)
		if s.Full() {
			t.Error("full after a write was taken")
		}
	})
}

func TestSQLite_DiskFull(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db := storetest.New(t, "sqlite")
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		limit := func(pages string) {
			t.Helper()
			must(t, s.Write(t.Context(), r.Session, func(ctx context.Context, x store.Tx) error { return x.Raw(ctx, "PRAGMA max_page_count = "+pages) }))
		}
		pages := db.Count(t, db.SQL(t), "PRAGMA page_count")
		limit(fmt.Sprint(pages + 2))
		var full error
		var admitted []string
		for i := 0; full == nil && i < 1000; i++ {
			key := fmt.Sprint("k", i)
			if _, full = s.SubmitPrompt(t.Context(), r.Owner, r.Session, key, queue(string(make40k()[:3000]))); full == nil {
				admitted = append(admitted, key)
			}
		}
		storetest.WantCode(t, full, journal.Unavailable)
		before := storetest.Events(t, s, r.Session) // reading goes on
		for range 3 {                               // and it stays so, for runs too
			limit(fmt.Sprint(pages + 2))
			_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(
				&journal.MessageCompleted{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T(string(make40k()))})})
			storetest.WantCode(t, err, journal.Unavailable)
		}
		// In a batch the small ones may still fit; those that don't leave nothing.
		limit(fmt.Sprint(pages + 2))
		errs := batch(t, s, r.Session,
			func() error {
				_, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, "big1", queue(string(make40k())))
				return err
			},
			func() error {
				_, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, "big2", queue(string(make40k())))
				return err
			})
		for _, err := range errs {
			storetest.WantCode(t, err, journal.Unavailable)
		}
		if after := storetest.Events(t, s, r.Session); len(after) != len(before) {
			t.Errorf("%d events after, %d before", len(after), len(before))
		}
		storetest.CheckInvariants(t, s)
		limit("1073741823")
		_, err := s.SubmitPrompt(t.Context(), r.Owner, r.Session, "big1", queue(string(make40k())))
		must(t, err)
		for _, key := range admitted {
			if _, err := s.Receipts(t.Context(), r.Owner, key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		must(t, s.Ready(t.Context()))
	})
}

// The database goes away under a batch. Its methods are told once that fails to
// come back, not each after a wait of its own; and nothing of them is written.
// A file doesn't go away so.
func TestGroupCommit_DatabaseAway(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		var tries atomic.Int32
		var back func()
		submit := func(key string) func() error {
			return func() error {
				_, err := s.SubmitPrompt(t.Context(), owner, session, key, queue("x"))
				return err
			}
		}
		errs := batch(t, s, session, submit("a"), submit("b"), submit("c"), submit("d"), func() error {
			return s.Write(t.Context(), session, func(_ context.Context, x store.Tx) (err error) {
				back, err = x.LoseDatabase(&tries)
				return err
			})
		})
		for i, err := range errs {
			if !journal.Is(err, journal.Unavailable) {
				t.Errorf("method %d: got %v", i, err)
			}
		}
		if n := tries.Load(); n != 1 {
			t.Errorf("%d tries to connect for one batch, want 1", n)
		}
		back()
		must(t, submit("a")())
		if n := storetest.CountKind(storetest.Events(t, s, session), journal.KindPromptAdmitted); n != 1 {
			t.Errorf("%d prompts, want the one that was sent again", n)
		}
	})
}

// What may be gone in a moment is unavailable; what is wrong with a statement isn't.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	for code, want := range map[pqerror.Code]bool{
		"08006": true, "28P01": true, "40P01": true, "53100": true, "55P03": true, "57P01": true, // 28P01: a password that has ended (STO-1)
		"23505": false, "42601": false, "22021": false,
	} {
		if got := store.Unavailable(fmt.Errorf("exec: %w", &pq.Error{Code: code})); got != want {
			t.Errorf("%s: got %v, want %v", code, got, want)
		}
	}
}

func TestWriters_OfASessionIsOne(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		if want := map[string]int{"sqlite": 1, "postgres": 4}[db.Name]; s.Writers() != want {
			t.Errorf("%d writers, want %d", s.Writers(), want)
		}
		var seen []int
		for range 64 {
			w := s.WriterOf(store.NewID("ses"))
			if !slices.Contains(seen, w) {
				seen = append(seen, w)
			}
		}
		if len(seen) != s.Writers() {
			t.Errorf("64 sessions went to %d of %d writers", len(seen), s.Writers())
		}
	})
}

// A server that was restarted between two writes costs nobody an answer.
func TestPostgres_LostConnectionBetweenWrites(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		owner := storetest.MustUser(t, s).ID
		session := storetest.MustSession(t, s, owner).ID
		for i := range 3 {
			if db.Name == "postgres" {
				db.MustExec(t, db.SQL(t), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
			}
			if _, err := s.SubmitPrompt(t.Context(), owner, session, fmt.Sprint(i), queue("x")); err != nil {
				t.Errorf("write %d: %v", i, err)
			}
			if _, err := s.EventsAfter(t.Context(), owner, session, 0, 10); err != nil { // what is prepared is so on connections that have ended
				t.Errorf("read events %d: %v", i, err)
			}
			if _, err := s.Session(t.Context(), owner, session); err != nil {
				t.Errorf("read %d: %v", i, err)
			}
		}
	})
}
