package vault_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/vault"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, s *store.Store, source vault.Source) *vault.Keeper {
	t.Helper()
	k, err := vault.Open(t.Context(), s, source)
	must(t, err)
	return k
}

func sourceIn(t *testing.T) vault.Source {
	return vault.Source{File: filepath.Join(t.TempDir(), "key")}
}

var keys int

func put(t *testing.T, k *vault.Keeper, owner, agent, name, value string) string {
	t.Helper()
	keys++
	id, err := k.Put(t.Context(), owner, vault.New{Agent: agent, Name: name, Value: value, Key: fmt.Sprint("form", keys)})
	must(t, err)
	return id
}

// proves OWN-3
func TestKeeper_KeepsValuesSealedAndMasked(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		const value, theirs = `s3cr3t/"of-alice`, "s3cr3t-of-somebody-else"
		s := db.Open(t)
		r, r2 := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w2")
		source := sourceIn(t)
		k := open(t, s, source)
		if _, err := os.Stat(source.File); !errors.Is(err, os.ErrNotExist) {
			t.Error("a key was made before it was needed")
		}
		id := put(t, k, r.Owner, "", "MODEL_KEY", value)
		put(t, k, r2.Owner, "", "MODEL_KEY", theirs)
		if text := s.Cleaner(r.Owner).Text("it is " + value + " or " + theirs); text != "it is [hidden] or "+theirs {
			t.Errorf("not masked, or another's is: %s", text)
		}
		if text := s.Cleaner("").Text("it is " + value + " or " + theirs); text != "it is "+value+" or "+theirs {
			t.Errorf("masked for everybody: %s", text)
		}
		got, err := k.ForSession(t.Context(), r.Session, "claude")
		must(t, err)
		if !slices.Equal(got.Env, []string{"MODEL_KEY=" + value}) || !slices.Equal(got.IDs, []string{id}) || !slices.Contains(got.Secrets, value) || !slices.Contains(got.Secrets, `s3cr3t/\"of-alice`) {
			t.Errorf("the agent gets %+v", got)
		}
		for _, v := range []string{value, theirs} {
			if db.Contains(t, v) {
				t.Error("the database has a value in clear")
			}
		}
		// A server that starts masks before it does anything.
		again := db.Open(t)
		open(t, again, source)
		if text := again.Cleaner(r.Owner).Text(value); text != "[hidden]" {
			t.Errorf("after a restart: %s", text)
		}
		// So does one that runs already, once it has looked.
		third := db.OpenUnchecked(t)
		k3 := open(t, third, source)
		put(t, k, r.Owner, "claude", "MODEL_KEY", "s3cr3t-of-later")
		must(t, k3.Tidy(t.Context()))
		if text := third.Cleaner(r.Owner).Text("s3cr3t-of-later"); text != "[hidden]" {
			t.Errorf("on another server: %s", text)
		}
	})
}

// One for an agent wins over one for all, another value is another id, and what was
// replaced is kept for the mask only, until nothing can have it.
//
// proves OWN-3
func TestKeeper_GivesTheLastOfEachName(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		source := sourceIn(t)
		k := open(t, s, source)
		gets := func(agent string, want ...string) {
			t.Helper()
			got, err := k.ForSession(t.Context(), r.Session, agent)
			must(t, err)
			if !slices.Equal(got.Env, want) {
				t.Errorf("%s gets %v, want %v", agent, got.Env, want)
			}
		}
		put(t, k, r.Owner, "", "B_KEY", "value-for-all")
		first := put(t, k, r.Owner, "codex", "B_KEY", "value-for-codex")
		put(t, k, r.Owner, "", "A_KEY", "value-of-another")
		gets("claude", "A_KEY=value-of-another", "B_KEY=value-for-all")
		gets("codex", "A_KEY=value-of-another", "B_KEY=value-for-codex")
		second := put(t, k, r.Owner, "codex", "B_KEY", "value-that-is-new")
		gets("codex", "A_KEY=value-of-another", "B_KEY=value-that-is-new")
		if first == second {
			t.Error("another value has the same id")
		}
		// The same form again is the same.
		n := vault.New{Name: "C_KEY", Value: "value-of-a-form", Key: "again"}
		id, err := k.Put(t.Context(), r.Owner, n)
		must(t, err)
		twice, err := k.Put(t.Context(), r.Owner, n)
		must(t, err)
		if list, err := s.Credentials(t.Context(), r.Owner); err != nil || id != twice || len(list) != 4 || list[2].Version != 2 || list[3].Version != 1 {
			t.Errorf("there are %+v, %v", list, err)
		}
		for _, clash := range []vault.New{{Name: "D_KEY", Value: "value-of-a-form", Key: "again"}, {Name: "C_KEY", Value: "another-value", Key: "again"}} {
			_, err := k.Put(t.Context(), r.Owner, clash)
			storetest.WantSlug(t, err, "idempotency-key-reused")
		}

		_, err = s.DeleteCredential(t.Context(), r.Owner, first)
		storetest.WantSlug(t, err, "credential-replaced")
		_, err = s.DeleteCredential(t.Context(), r.Owner, second)
		must(t, err)
		_, err = s.DeleteCredential(t.Context(), r.Owner, second)
		storetest.WantSlug(t, err, "credential-deleted")
		gets("codex", "A_KEY=value-of-another", "B_KEY=value-for-all", "C_KEY=value-of-a-form")

		// What was replaced or deleted is masked by a server that starts now, until no
		// process can have it.
		masks := func() string {
			restarted := db.OpenUnchecked(t)
			open(t, restarted, source)
			return restarted.Cleaner(r.Owner).Text("value-for-codex value-that-is-new value-for-all")
		}
		process := store.NewID("prc")
		_, err = s.Append(t.Context(), r.Claim, store.Append{
			Drafts: storetest.Drafts(&journal.AgentStarted{ProcessID: process, StateFolderID: r.Claim.StateFolderID}),
			Agent:  &store.AgentIO{ProcessID: process, Begins: r.Claim.StateFolderID},
		})
		must(t, err)
		s.Skew(time.Hour)
		must(t, k.Tidy(t.Context()))
		if text := masks(); text != "[hidden] [hidden] [hidden]" {
			t.Errorf("while a process may have them: %s", text)
		}
		list, _, err := s.AgentProcesses(t.Context(), r.Claim.StateFolderID, "", 10)
		must(t, err)
		must(t, s.ForgetAgentProcess(t.Context(), list[0], store.AgentEnd{}))
		must(t, k.Tidy(t.Context()))
		if text := masks(); text != "value-for-codex value-that-is-new [hidden]" {
			t.Errorf("afterwards: %s", text)
		}
	})
}

// Of one form that is sent with two values, by whatever server, one is stored and the
// other refused, and agents get the one that is stored.
//
// proves OWN-3 ADM-4
func TestKeeper_OneFormWithTwoValues(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		source := sourceIn(t)
		k := open(t, s, source)
		put(t, k, r.Owner, "", "FIRST", "value-of-the-first")
		keepers := []*vault.Keeper{k, open(t, db.OpenUnchecked(t), source)}
		again := func(name string, by [2]*vault.Keeper) {
			t.Helper()
			values, errs := [2]string{"value-one-of-" + name, "value-two-of-" + name}, [2]error{}
			var wg sync.WaitGroup
			for i := range by {
				wg.Go(func() {
					_, errs[i] = by[i].Put(t.Context(), r.Owner, vault.New{Name: name, Value: values[i], Key: "form of " + name})
				})
			}
			wg.Wait()
			if (errs[0] == nil) == (errs[1] == nil) {
				t.Fatalf("%s: %v", name, errs)
			}
			won := slices.Index(errs[:], nil)
			storetest.WantSlug(t, errs[1-won], "idempotency-key-reused")
			for _, k := range keepers {
				if got, err := k.ForSession(t.Context(), r.Session, "claude"); err != nil || !slices.Contains(got.Env, name+"="+values[won]) {
					t.Errorf("%s: agents get %v, %v", name, got.Env, err)
				}
			}
			for i, k := range by {
				_, err := k.Put(t.Context(), r.Owner, vault.New{Name: name, Value: values[i], Key: "form of " + name})
				if i == won {
					must(t, err)
				} else {
					storetest.WantSlug(t, err, "idempotency-key-reused")
				}
			}
		}
		for i := range 10 {
			again(fmt.Sprint("ONE_", i), [2]*vault.Keeper{keepers[0], keepers[0]})
			again(fmt.Sprint("TWO_", i), [2]*vault.Keeper{keepers[0], keepers[1]})
		}
	})
}

// A key that is gone from its place while the server runs, or is another one, seals
// nothing more: nobody could open that after a restart.
//
// proves OWN-3
func TestKeeper_SealsNothingWithAKeyThatIsGone(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		raw := db.SQL(t)
		source := sourceIn(t)
		k := open(t, s, source)
		put(t, k, r.Owner, "", "A_KEY", "value-of-one")
		mine, err := os.ReadFile(source.File)
		must(t, err)
		before := db.RowCounts(t, raw)
		for name, change := range map[string]func() error{
			"gone":           func() error { return os.RemoveAll(source.File) },
			"another":        func() error { return os.WriteFile(source.File, []byte(strings.Repeat("0f", 32)), 0o600) },
			"spoilt":         func() error { return os.WriteFile(source.File, []byte("rubbish"), 0o600) },
			"open to others": func() error { return errors.Join(os.WriteFile(source.File, mine, 0o600), os.Chmod(source.File, 0o644)) },
		} {
			must(t, change())
			_, err := k.Put(t.Context(), r.Owner, vault.New{Name: "B_KEY", Value: "value-of-two", Key: name})
			storetest.WantSlug(t, err, "no-key")
			if !strings.Contains(err.Error(), "could not be opened after a restart") {
				t.Errorf("%s: %v", name, err)
			}
			_ = os.Remove(source.File)
		}
		wantSame(t, before, db.RowCounts(t, raw))
		must(t, os.WriteFile(source.File, mine, 0o600))
		put(t, k, r.Owner, "", "B_KEY", "value-of-two")
	})
}

// The first credential can't be stored where the file of the key can't be written.
//
// proves OWN-3
func TestKeeper_NoRoomForTheKey(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		source := vault.Source{File: filepath.Join(t.TempDir(), strings.Repeat("n", 250))} // there is none, and its draft's name is too long
		k := open(t, s, source)
		_, err := k.Put(t.Context(), r.Owner, vault.New{Name: "A_KEY", Value: "value-of-one", Key: "x"})
		storetest.WantSlug(t, err, "key-unwritten")
		if !journal.Is(err, journal.Unavailable) {
			t.Errorf("it is %v", err)
		}
	})
}

// A key that doesn't fit opens nothing, adds nothing, and says what holds and what to do.
//
// proves OWN-3
func TestKeeper_RefusesAnotherKey(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := storetest.MustRun(t, s, "w")
		raw := db.SQL(t)
		mine, theirs := sourceIn(t), sourceIn(t)
		late := open(t, db.OpenUnchecked(t), theirs) // runs since before there was a key
		k := open(t, s, mine)
		put(t, k, r.Owner, "", "A_KEY", "value-of-one")
		put(t, k, r.Owner, "", "B_KEY", "value-of-two")
		before := db.RowCounts(t, raw)
		_, err := late.Put(t.Context(), r.Owner, vault.New{Name: "C_KEY", Value: "value-of-three", Key: "x"})
		storetest.WantSlug(t, err, "no-key")
		if _, err := os.Stat(theirs.File); !errors.Is(err, os.ErrNotExist) {
			t.Error("a second key was made")
		}
		if _, err := theirs.Make(); err != nil {
			t.Fatal(err)
		}
		_, err = late.Put(t.Context(), r.Owner, vault.New{Name: "C_KEY", Value: "value-of-three", Key: "x"})
		storetest.WantSlug(t, err, "no-key")
		for name, source := range map[string]vault.Source{"another": theirs, "none": sourceIn(t)} {
			_, err := vault.Open(t.Context(), db.OpenUnchecked(t), source)
			var ke *vault.KeyError
			if !errors.As(err, &ke) || !strings.Contains(err.Error(), "2 stored credentials") || !strings.Contains(err.Error(), "holdfast credential forget") {
				t.Errorf("%s: %v", name, err)
			}
			key, _, kerr := s.CredentialKey(t.Context())
			must(t, kerr)
			sealed, serr := s.SealedCredentials(t.Context(), "", 10)
			must(t, serr)
			if _, err := vault.Fits(source, key, sealed); err == nil {
				t.Errorf("%s fits", name)
			}
		}
		wantSame(t, before, db.RowCounts(t, raw))

		n, err := s.ForgetCredentials(t.Context())
		must(t, err)
		if n != 2 {
			t.Errorf("%d were forgotten", n)
		}
		put(t, late, r.Owner, "", "A_KEY", "value-of-four")
		if _, err := k.ForSession(t.Context(), r.Session, "claude"); err == nil {
			t.Error("the old key opens what the new one has sealed")
		}
	})
}

// Rows that changed places, or whose owner was changed, don't open, and the others do.
//
// proves OWN-3 OWN-1
func TestKeeper_SwappedRowsDoNotOpen(t *testing.T) {
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r, r2 := storetest.MustRun(t, s, "w"), storetest.MustRun(t, s, "w2")
		raw := db.SQL(t)
		source := sourceIn(t)
		k := open(t, s, source)
		mine := put(t, k, r.Owner, "", "A_KEY", "value-of-alice")
		put(t, k, r2.Owner, "", "A_KEY", "value-of-bob-1")
		fine := put(t, k, r2.Owner, "", "B_KEY", "value-of-bob-2")
		db.MustExec(t, raw, "UPDATE credential SET sealed = (SELECT sealed FROM credential WHERE id = ?) WHERE owner_id = ? AND name = 'A_KEY'", mine, r2.Owner)
		again := open(t, db.OpenUnchecked(t), source)
		if spoilt := again.Spoilt(); len(spoilt) != 1 || !strings.Contains(spoilt[0].Error(), "A_KEY") {
			t.Errorf("spoilt: %v", spoilt)
		}
		if got, err := again.ForSession(t.Context(), r2.Session, "claude"); err == nil || len(got.Env) > 0 {
			t.Errorf("bob's agent gets %v, %v", got, err)
		}
		_ = fine
		if got, err := again.ForSession(t.Context(), r.Session, "claude"); err != nil || len(got.Env) != 1 {
			t.Errorf("alice's agent gets %v, %v", got, err)
		}
		put(t, again, r2.Owner, "", "A_KEY", "value-of-bob-3")
		if got, err := again.ForSession(t.Context(), r2.Session, "claude"); err != nil || len(got.Env) != 2 {
			t.Errorf("after storing it again: %v, %v", got, err)
		}
	})
}

// proves OWN-3
func TestNew_Check(t *testing.T) {
	t.Parallel()
	good := vault.New{Name: "MODEL_KEY", Value: "ein Schlüssel mit ä"}
	must(t, good.Check())
	for _, name := range []string{"GIT_TOKEN", "NODE_AUTH_TOKEN", "PYTHON_INDEX_TOKEN", "JAVA_KEY"} {
		must(t, vault.New{Name: name, Value: good.Value}.Check())
	}
	for _, name := range []string{"", "PATH", "HOME", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "HOLDFAST_KEY", "HOLDFAST_CALL", "BASH_ENV", "NODE_OPTIONS", "NODE_PATH", "GIT_CONFIG_COUNT", "GIT_SSH_COMMAND", "GIT_ASKPASS", "PERL5DB", "JDK_JAVA_OPTIONS", "ZDOTDIR", "TMP", "LC_ALL", "A-B", "1A", "A B", "Ä", "A=B", strings.Repeat("A", 101)} {
		storetest.WantSlug(t, vault.New{Name: name, Value: good.Value}.Check(), "bad-credential-name")
	}
	for _, value := range []string{"", "        ", "short", "with\nline", "with\x00nul", "with\ttab-inside", " leading-blank", "trailing-blank ", strings.Repeat("x", vault.MaxValue+1), "no-\xff-utf8", "\ufeffwith-a-mark", "with-nothing\u200b", "with\u2028a-line", "turned-\u202eround", "12345678", "-1234.567e+8", "20261130.1"} {
		err := vault.New{Name: good.Name, Value: value}.Check()
		storetest.WantSlug(t, err, "bad-credential-value")
		if value != "" && strings.TrimSpace(value) != "" && value != "short" && strings.Contains(err.Error(), value) {
			t.Errorf("the refusal repeats the value: %v", err)
		}
	}
	if !journal.Is(vault.New{}.Check(), journal.Unprocessable) {
		t.Error("it isn't unprocessable")
	}
}

func wantSame(t *testing.T, before, after map[string]int64) {
	t.Helper()
	for name, n := range before {
		if after[name] != n {
			t.Errorf("%s has %d rows, had %d", name, after[name], n)
		}
	}
}
