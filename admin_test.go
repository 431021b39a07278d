package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// What a flag can't mean is said before anything is made.
func TestRun_RefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	holdfast := func(args ...string) (code int, errs string) {
		var out, complaint bytes.Buffer
		done := make(chan int, 1)
		go func() {
			done <- run(t.Context(), append(args, "--state", state), streams{strings.NewReader(""), &out, &complaint})
		}()
		select {
		case code = <-done:
		case <-time.After(30 * time.Second): // a server that isn't refused serves for ever
			t.Fatalf("%q was not refused", args)
		}
		return code, complaint.String()
	}
	if code, errs := holdfast("user", "add", "a@b.example"); code != exitDone {
		t.Fatal(errs)
	}
	for _, tt := range []struct {
		want int
		args []string
	}{
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--public-url", "javascript:alert(1)"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--public-url", "holdfast.example"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--agent-env", "PATH,HOLDFAST_KEY"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--agent-env", "PATH,KEY=not-to-be-shown"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--agent-env", "HOLDFAST_KEY=not-to-be-shown"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--agent-env", "not-to-be-shown=x"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--agent-env", "KEY\nnot-to-be-shown"}},
		{exitUsage, []string{"user", "add", "c@b.example", "--public-url", "https://"}},
		{exitUsage, []string{"user", "link", "a@b.example", "--public-url", "https://u:p@x/"}},
		{exitUsage, []string{"token", "new", "a@b.example", "--name", " "}},
		{exitUsage, []string{"token", "new", "a@b.example", "--name", "one\ntwo"}},
		{exitUsage, []string{"token", "new", "a@b.example", "--name", "red \x1b[31m"}},
		{exitUsage, []string{"token", "new", "a@b.example", "--name", "turned \u202e"}},
		{exitFailed, []string{"user", "add", "a@b\x1b]0;x\x07.example"}},
		{exitFailed, []string{"user", "add", "a@b\xff.example"}},
		{exitFailed, []string{"user", "add", "a@@b"}},
		{exitFailed, []string{"user", "add", "a@b\u200b"}},
		{exitFailed, []string{"user", "add", "@b"}},
		{exitDone, []string{"user", "link", "a@b.example", "--public-url", "https://holdfast.example:8443/"}},
		{exitDone, []string{"token", "new", "a@b.example", "--name", "ci, für alles"}},
	} {
		if code, errs := holdfast(tt.args...); code != tt.want || (code != exitDone && strings.Count(errs, "\n") == 0) {
			t.Errorf("%q: exit %d, want %d: %s", tt.args, code, tt.want, errs)
		} else if strings.Contains(errs, "not-to-be-shown") {
			t.Errorf("%q tells a value: %s", tt.args, errs)
		}
	}
}

// What a command can't do it says with the name of what it looked for, where that was,
// and what there is to do.
func TestRun_NamesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	holdfast := func(args ...string) (code int, errs string) {
		var out, complaint bytes.Buffer
		code = run(t.Context(), append(args, "--state", state), streams{strings.NewReader(""), &out, &complaint})
		return code, complaint.String()
	}
	if code, errs := holdfast("user", "add", "a@b.example"); code != exitDone {
		t.Fatal(errs)
	}
	journal := filepath.Join(state, "holdfast.db")
	for _, tt := range []struct {
		want int
		args string
		says []string
	}{
		{exitFailed, "export ses_nope", []string{"no session ses_nope", journal, "address of its page"}},
		{exitFailed, "verify ses_nope", []string{"no session ses_nope", journal, "address of its page"}},
		{exitFailed, "user link x@b.example", []string{"no user x@b.example", journal, "holdfast user list"}},
		{exitFailed, "user disable x@b.example", []string{"no user x@b.example", journal, "holdfast user list"}},
		{exitFailed, "user add a@b.example", []string{"a user a@b.example", "holdfast user link"}},
		{exitFailed, "user add nonsense", []string{`"nonsense" is not an email address`, "no user was added"}},
		{exitFailed, "user add c@b.example --password-stdin", []string{"standard input ended", "no user was added"}},
		{exitFailed, "token new x@b.example --name ci", []string{"no user x@b.example", journal, "holdfast user list"}},
		{exitFailed, "token revoke tok_nope", []string{"no token tok_nope", journal, "holdfast token list"}},
		{exitUsage, "token new", []string{"token new: missing flags: --name", "nothing was done", "holdfast token new --help"}},
		{exitUsage, "token", []string{"token: expected one of", "holdfast token --help"}},
		{exitUsage, "doctor nonsense", []string{"doctor: unexpected argument nonsense", "holdfast doctor --help"}},
		{exitUsage, "doctor agent nobody", []string{`no agent "nobody"`, "runbook"}},
		{exitUsage, "export", []string{"export: expected", "holdfast export --help"}},
		{exitUsage, "user link a@b.example --public-url nope", []string{"user link: --public-url", "holdfast user link --help"}},
		{exitUsage, "nonsense", []string{"unexpected argument nonsense", "holdfast --help"}},
		{exitUsage, "backup " + filepath.Join(state, "none", "copy.db"), []string{filepath.Join(state, "none"), "nothing was copied"}},
		{exitUsage, "verify --config /nowhere.toml", []string{"no configuration at /nowhere.toml"}},
		{exitUsage, "serve --addr 127.0.0.1:0 --workspaces /nowhere", []string{"/nowhere", "nothing is served", "--workspaces"}},
	} {
		code, errs := holdfast(strings.Fields(tt.args)...)
		for _, words := range tt.says {
			if code != tt.want || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, words) {
				t.Errorf("holdfast %s: exit %d, want %d, with %q: %s", tt.args, code, tt.want, words, errs)
			}
		}
	}
}

// What was stored before it was checked is listed without being obeyed.
func TestLists_AreLegible(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	user := storetest.MustUser(t, db.Open(t))
	raw := db.SQL(t)
	for _, q := range []string{
		"UPDATE users SET email = 'a' || char(27) || '[2J' || char(9, 10, 8238) || '@b.example'",
		"INSERT INTO token (id, user_id, hash, name, scope, created_at) SELECT 'tok_1', id, 'x', char(155, 27) || ']0;owned' || char(7), 'all', 0 FROM users",
	} {
		if _, err := raw.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	for _, list := range []string{"user", "token"} {
		var out, complaint bytes.Buffer
		if code := run(t.Context(), []string{list, "list", "--database", db.URL}, streams{strings.NewReader(""), &out, &complaint}); code != exitDone {
			t.Fatal(complaint.String())
		}
		if text := out.String(); strings.Count(text, "\n") != 2 || strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), illegible) || !strings.Contains(text, `a\x1b[2J\t\n\u202e@b.example`) {
			t.Errorf("%s list for %s printed %q", list, user.ID, text)
		}
	}
}

// What could never sign in isn't made.
func TestRun_DisabledUser(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	holdfast := func(want int, args ...string) (out, errs string) {
		var o, e bytes.Buffer
		if code := run(t.Context(), append(args, "--state", state), streams{strings.NewReader(""), &o, &e}); code != want {
			t.Fatalf("%q: exit %d, want %d: %s", args, code, want, e.String())
		}
		return o.String(), e.String()
	}
	holdfast(exitDone, "user", "add", "a@b.example")
	holdfast(exitDone, "user", "disable", "a@b.example")
	for _, args := range [][]string{{"token", "new", "a@b.example", "--name", "ci"}, {"user", "link", "a@b.example"}} {
		if out, errs := holdfast(exitFailed, args...); out != "" || !strings.Contains(errs, "disabled") {
			t.Errorf("%q printed %q and %q", args, out, errs)
		}
	}
}

// What a command says of a journal that can't be written is what one can do about it.
func TestRun_JournalCannotBeWritten(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	user := storetest.MustUser(t, db.Open(t))
	raw := db.SQL(t)
	conn, err := raw.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil { // nobody else can write
		t.Fatal(err)
	}
	var out, complaint bytes.Buffer
	code := run(t.Context(), []string{"token", "new", user.Email, "--name", "ci", "--database", db.URL}, streams{strings.NewReader(""), &out, &complaint})
	if said := complaint.String(); code != exitFailed || out.Len() > 0 || strings.Contains(said, "key") || !strings.Contains(said, "again") || !strings.Contains(said, "database is locked") {
		t.Errorf("exit %d, %q, %q", code, out.String(), said)
	}
	lost := plain(&journal.Error{Code: journal.Unavailable, Type: "commit-unknown", Message: "It isn't known.", Err: errors.New("the connection ended")})
	if got, want := lost.Error(), "It isn't known. Look at the list before you run the command again. The cause: the connection ended"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// proves OWN-3
func TestSecretsOf_TheJournal(t *testing.T) {
	t.Setenv("SOME_TOKEN", "not-for-the-journal")
	for database, want := range map[string]string{
		"postgres://u:longer-than-seven@h/db":          "longer-than-seven",
		"postgres://u@h/db?password=longer-than-seven": "longer-than-seven",
		"postgres://u:dev@h/db":                        "", // it would hide /dev
		filepath.Join("some", "file.db"):               "",
	} {
		secrets := secretsOf(database, nil)
		if !slices.Contains(secrets, "not-for-the-journal") || slices.Contains(secrets, "dev") || slices.Contains(secrets, "longer-than-seven") != (want != "") {
			t.Errorf("%s: %q", database, secrets)
		}
		if got := shown(database); want != "" && strings.Contains(got, want) || strings.Contains(got, "dev@") {
			t.Errorf("it is shown as %s", got)
		}
	}
}
