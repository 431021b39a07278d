package store_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func TestMigrate_EmptyToHeadBySeveral(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Empty(t, name)
			noErrors(t, together(4, func(int) error {
				s, err := store.Open(t.Context(), store.Options{URL: db.URL})
				if err != nil {
					return err
				}
				return s.Close()
			}))
			s := db.Open(t)
			r := storetest.MustRun(t, s, "w")
			end(t, s, r.Claim, journal.Completed, true)
		})
	}
}

func TestMigrate_TreesMatch(t *testing.T) {
	t.Parallel()
	names := func(dir string) (out []string) {
		files, err := filepath.Glob(filepath.Join("..", "migrations", dir, "*.sql"))
		must(t, err)
		for _, f := range files {
			out = append(out, filepath.Base(f))
		}
		return out
	}
	if a, b := names("sqlite"), names("postgres"); len(a) == 0 || strings.Join(a, " ") != strings.Join(b, " ") {
		t.Errorf("sqlite has %v, postgres %v", a, b)
	}
}

// A journal of the first schema, with a message that was cut short and a call that
// ran twice, is whole again after its migration.
// proves JRN-4
func TestMigrate_DerivedTables(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Empty(t, name)
			s := db.OpenUnchecked(t)
			r := storetest.MustRun(t, s, "w")
			id := r.MustDispatched(t, s, journal.EffectRead)
			early := storetest.MustAppend(t, s, r.Claim, "", &journal.CallOutput{CallID: id, Stream: "stdout", Text: journal.T("early")})[0].Seq
			storetest.MustAppend(t, s, r.Claim, "", storetest.Dispatch(id, 2), &journal.CallOutput{CallID: id, Stream: "stdout", Text: journal.T("late")},
				&journal.MessageDelta{MessageID: "m", Role: "agent", Part: journal.PartText, Text: journal.T("begun")})
			must(t, s.Close())

			raw := db.SQL(t)
			db.MustExec(t, raw, "INSERT INTO call_output (call_id, byte_offset, seq, session_id, stream, bytes, dropped) VALUES (?, 0, ?, ?, 'stdout', 5, 0)", id, early, r.Session)
			db.MustExec(t, raw, "UPDATE message SET text = 'begun' WHERE id = 'm'")
			// By its statements alone: the migrations after it have been applied.
			script, err := os.ReadFile(filepath.Join("..", "migrations", name, "0002_derived_tables.sql"))
			must(t, err)
			_, err = raw.ExecContext(t.Context(), string(script))
			must(t, err)

			out, err := db.Open(t).CallOutput(t.Context(), r.Owner, id, 0, 100) // and it is verified at its end
			if err != nil || string(out.Data) != "late" {
				t.Errorf("got %q, %v", out.Data, err)
			}
		})
	}
}

// Of calls that were settled before it was noted how long they ran, it is noted
// where it is known: the rebuilt table says the same.
func TestMigrate_HowLongCallsRan(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Empty(t, name)
			s := db.OpenUnchecked(t)
			r := storetest.MustRun(t, s, "w")
			seen := r.MustDispatched(t, s, journal.EffectRead)
			storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(seen, journal.CallSucceeded))
			refused := r.MustCall(t, s, journal.EffectRead)
			storetest.MustAppend(t, s, r.Claim, "", storetest.Settle(refused, journal.CallIsRefused))
			found := r.MustSpooled(t, s, journal.EffectEffect)
			storetest.MustFind(t, s, r.Claim, map[string]store.Found{found: {Settled: &journal.CallSettled{State: journal.CallFailed}}})
			must(t, s.Close())

			raw := db.SQL(t)
			db.MustExec(t, raw, "UPDATE call SET ran_ms = NULL")
			script, err := os.ReadFile(filepath.Join("..", "migrations", name, "0006_ran.sql"))
			must(t, err)
			_, update, _ := strings.Cut(string(script), "BIGINT;") // the column is there
			_, err = raw.ExecContext(t.Context(), update)
			must(t, err)
			s = db.Open(t) // and it is verified at its end
			for id, known := range map[string]bool{seen: true, found: false, refused: false} {
				c, err := s.Call(t.Context(), r.Owner, id)
				must(t, err)
				if (c.RanMS != nil) != known {
					t.Errorf("%s ran %v ms, known %v", c.State, c.RanMS, known)
				}
			}
		})
	}
}

func TestOpen_RefusesAnotherSchema(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Empty(t, name)
			if name == "postgres" { // a file that isn't there is another refusal
				_, err := store.Open(t.Context(), store.Options{URL: db.URL, Admin: true})
				if err == nil {
					t.Error("a database without any schema was opened")
				}
			}
			s := db.OpenUnchecked(t)
			must(t, s.Close())
			admin := db.OpenUnchecked(t, func(o *store.Options) { o.Admin = true })
			if _, err := admin.Users(t.Context()); err != nil {
				t.Errorf("beside its server: %v", err)
			}
			raw := db.SQL(t)
			applied := map[string]string{"sqlite": "1", "postgres": "true"}[name]
			db.MustExec(t, raw, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, "+applied+")")
			for _, admin := range []bool{true, false} { // a newer journal isn't served by an older build either
				_, err := store.Open(t.Context(), store.Options{URL: db.URL, Admin: admin})
				if !errors.Is(err, store.ErrSchema) {
					t.Errorf("a newer schema, admin %v: %v", admin, err)
				}
			}
		})
	}
}

func TestOpen_RefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "none.db")
	if _, err := store.Open(t.Context(), store.Options{URL: missing, Admin: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the file was made")
	}
	for _, name := range []string{"a b?c#d%20&_pragma=synchronous(0).db", "ünï;x.db"} { // a name is a name
		path := filepath.Join(t.TempDir(), name)
		s, err := store.Open(t.Context(), store.Options{URL: path})
		must(t, err)
		must(t, s.Ready(t.Context()))
		must(t, s.Close())
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// proves ADM-1
func TestSQLite_IsDurableOrRefused(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		db := storetest.New(t, "sqlite")
		s := db.Open(t)
		var sync int
		must(t, s.Write(t.Context(), "", func(ctx context.Context, x store.Tx) error { return x.Get(ctx, &sync, "PRAGMA synchronous") }))
		if sync != 2 || s.Durable() != "WAL, synchronous=FULL" {
			t.Errorf("synchronous is %d; it says %q", sync, s.Durable())
		}
		for pragmas, ok := range map[string]bool{
			"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)":   true,
			"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)": false,
			"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)":    false,
		} {
			if err := store.CheckDurable(t.Context(), "file:"+db.URL+pragmas); (err == nil) != ok {
				t.Errorf("%s: %v", pragmas, err)
			}
		}
		other := filepath.Join(t.TempDir(), "delete.db")
		if err := store.CheckDurable(t.Context(), "file:"+other+"?_pragma=synchronous(FULL)"); err == nil {
			t.Error("a journal without WAL was taken")
		}
	})
}

// proves STO-1
func TestPostgres_PasswordIsReadAtEachConnect(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		if name == "sqlite" { // it has no password
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, name)
			db.Open(t)
			raw := db.SQL(t)
			role := "holdfast_" + strings.ToLower(store.NewSecret()[:12])
			db.MustExec(t, raw, "CREATE ROLE "+role+" LOGIN SUPERUSER PASSWORD 'one'")
			t.Cleanup(func() { db.MustExec(t, raw, "DROP ROLE "+role) })
			u, err := url.Parse(db.URL)
			must(t, err)
			file := filepath.Join(t.TempDir(), "pgpass")
			write := func(password string) {
				t.Helper()
				must(t, os.WriteFile(file, []byte("*:*:*:"+role+":"+password+"\n"), 0o600))
			}
			u.User = url.User(role)
			q := u.Query()
			q.Set("passfile", file)
			u.RawQuery = q.Encode()

			write("wrong")
			if _, err := store.Open(t.Context(), store.Options{URL: u.String(), Admin: true}); err == nil {
				t.Fatal("a wrong password was taken: this server demands none, so nothing is proved (scripts/postgres starts one that does)")
			}
			write("one")
			s, err := store.Open(t.Context(), store.Options{URL: u.String()})
			must(t, err)
			defer func() { must(t, s.Close()) }()
			must(t, s.Ready(t.Context()))
			// The password is changed, and every connection lost.
			db.MustExec(t, raw, "ALTER ROLE "+role+" PASSWORD 'two'")
			write("two")
			db.MustExec(t, raw, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '"+role+"'")
			must(t, s.Ready(t.Context()))
			must(t, s.Ping(t.Context()))
		})
	}
}

// What is held needs its owner, also in journals from before that counted.
// proves JRN-4
func TestMigrate_HeldNeeds(t *testing.T) {
	t.Parallel()
	for _, name := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Empty(t, name)
			s := db.OpenUnchecked(t)
			owner := storetest.MustUser(t, s).ID
			storetest.States(t, s, owner)
			want, err := s.NeedsCount(t.Context(), owner)
			must(t, err)
			must(t, s.Close())

			raw := db.SQL(t)
			db.MustExec(t, raw, "UPDATE session SET needs = 'none' WHERE base IN ('stopped', 'failed', 'limit_reached') AND needs = 'blocked'")
			script, err := os.ReadFile(filepath.Join("..", "migrations", name, "0012_held_needs.sql"))
			must(t, err)
			_, err = raw.ExecContext(t.Context(), string(script))
			must(t, err)

			got, err := db.Open(t).NeedsCount(t.Context(), owner) // and it is verified at its end
			if err != nil || want[journal.NeedsBlocked] < 2 || got[journal.NeedsBlocked] != want[journal.NeedsBlocked] {
				t.Errorf("got %v, want %v, %v", got, want, err)
			}
		})
	}
}
