package main

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a flag can't mean is said before anything is made.
func TestRun_RefusesWhatCannotBeMeant(t *testing.T) {
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
	for _, tt := range []struct {
		want int
		args []string
	}{
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--public-url", "javascript:alert(1)"}},
		{exitUsage, []string{"serve", "--addr", "127.0.0.1:0", "--public-url", "holdfast.example"}},
		{exitUsage, []string{"user", "add", "c@b.example", "--public-url", "https://"}},
		{exitUsage, []string{"user", "link", "a@b.example", "--public-url", "https://u:p@x/"}},
		{exitUsage, []string{"token", "new", "a@b.example", "--name", " "}},
		{exitUsage, []string{"token", "new", "a@b.example", "--name", "one\ntwo"}},
		{exitFailed, []string{"user", "add", "a@@b"}},
		{exitFailed, []string{"user", "add", "a@b\u200b"}},
		{exitFailed, []string{"user", "add", "@b"}},
		{exitDone, []string{"user", "link", "a@b.example", "--public-url", "https://holdfast.example:8443/"}},
		{exitDone, []string{"token", "new", "a@b.example", "--name", "ci, für alles"}},
	} {
		if code, errs := holdfast(tt.args...); code != tt.want || (code != exitDone && strings.Count(errs, "\n") == 0) {
			t.Errorf("%q: exit %d, want %d: %s", tt.args, code, tt.want, errs)
		}
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
