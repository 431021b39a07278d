//go:build crashpoints

package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// inCheck is how many mutants every check runs.
const inCheck = 10

// bound of one mutant's build and test: a test that waits in vain fails when its patience ends.
const bound = 8 * time.Minute

// places bounds how many are built at once.
var places = make(chan struct{}, 2)

// mutant is one patch.
type mutant struct {
	name     string
	path     string
	rules    []string
	pkg, run string
	postgres bool
	check    bool
	why      string
	files    []string // that it changes, from the root of the module
}

var (
	headLine  = regexp.MustCompile(`^(Rules|Test|Check|Database): (.+)$`)
	fileLine  = regexp.MustCompile(`(?m)^\+\+\+ b/(\S+)$`)
	rulesLike = regexp.MustCompile(`^[A-Z]{3}-[1-9][0-9]*$`)
)

// load reads all patches.
func load(t *testing.T) []mutant {
	t.Helper()
	paths, err := filepath.Glob("*.patch")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no patches: %v", err)
	}
	var all []mutant
	for _, path := range paths {
		m, err := read(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, m)
	}
	return all
}

func read(path string) (mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{name: strings.TrimSuffix(path, ".patch")}
	if m.path, err = filepath.Abs(path); err != nil {
		return m, err
	}
	head, diff, ok := strings.Cut(string(text), "\n--- a/")
	if !ok {
		return m, errors.New("no diff in it")
	}
	var why []string
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		f := headLine.FindStringSubmatch(line)
		switch {
		case f == nil:
			why = append(why, line)
		case f[1] == "Rules":
			m.rules = strings.Fields(f[2])
		case f[1] == "Test":
			m.pkg, m.run, _ = strings.Cut(f[2], " ")
		case f[1] == "Check":
			m.check = f[2] == "yes"
		case f[1] == "Database":
			m.postgres = f[2] == "postgres"
		}
	}
	m.why = strings.TrimSpace(strings.Join(why, " "))
	for _, f := range fileLine.FindAllStringSubmatch("--- a/"+diff, -1) {
		m.files = append(m.files, f[1])
	}
	bad := slices.ContainsFunc(m.rules, func(r string) bool { return !rulesLike.MatchString(r) })
	if bad || len(m.rules) == 0 || m.pkg == "" || m.run == "" || m.why == "" || len(m.files) == 0 {
		return m, errors.New("its head must say Rules, Test (package and regular expression), and in words what is broken")
	}
	return m, nil
}

// overlay applies the patch to copies and writes the file that puts them in
// place of the originals.
func (m mutant) overlay(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for _, name := range m.files {
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatalf("the patch %s changes a file that isn't there any more: %v", m.name, err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, src, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, name)] = to
	}
	// Outside of any repository git apply is a patch that takes no guesses.
	cmd := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", m.path)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the patch %s doesn't apply any more, since the code that it breaks (%s) was changed: write it anew, so that it breaks %s again.\n%s",
			m.name, strings.Join(m.files, ", "), strings.Join(m.rules, " and "), out)
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kill runs the mutant's test and fails unless that fails.
func (m mutant) kill(t *testing.T) {
	t.Helper()
	if m.postgres && os.Getenv("TEST_POSTGRES_URL") == "" {
		t.Fatal("this mutant needs TEST_POSTGRES_URL (scripts/postgres)")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay := m.overlay(t, root)
	places <- struct{}{}
	defer func() { <-places }()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", "test", "-vet=off", "-count=1", "-timeout=6m", "-ldflags=-s -w", "-run", m.run, m.pkg)
	cmd.Dir = root
	// By the environment, so that a test that builds the binary builds the mutant.
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay)
	if !m.postgres {
		cmd.Env = append(cmd.Env, "TEST_POSTGRES_URL=")
	}
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr = &buf, &buf
	err = cmd.Run()
	out := buf.String()
	switch {
	case ctx.Err() != nil:
		t.Fatalf("the mutant took longer than %s:\n%s", bound, tail(out))
	case err == nil && strings.Contains(out, "[no tests to run]"):
		t.Fatalf("%s has no test %s", m.pkg, m.run)
	case err == nil:
		t.Fatalf("the mutant lives: %s passes although %s is broken (%s)\n%s", m.run, strings.Join(m.rules, " and "), m.why, tail(out))
	case strings.Contains(out, "panic: test timed out"):
		t.Fatalf("the test neither passed nor failed, it hung:\n%s", tail(out))
	case !strings.Contains(out, "--- FAIL: ") && !strings.Contains(out, "panic: "):
		t.Fatalf("no test failed, something else did:\n%s", tail(out))
	}
	t.Logf("%s: noticed by %s in %s", strings.Join(m.rules, " "), m.run, time.Since(began).Round(100*time.Millisecond))
}

func tail(s string) string {
	if len(s) > 6000 {
		return "…" + s[len(s)-6000:]
	}
	return s
}

// killAll runs mutants as parallel subtests.
func killAll(t *testing.T, list []mutant) {
	t.Helper()
	for _, m := range list {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.kill(t)
		})
	}
}

// Ten of the mutants, which every check runs.
func TestMutants(t *testing.T) {
	t.Parallel()
	all := load(t)
	ten := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !m.check })
	if len(ten) != inCheck {
		t.Errorf("%d patches say Check: yes, want %d", len(ten), inCheck)
	}
	killAll(t, ten)
}

// All patches apply, whether they are run or not.
func TestMutants_Apply(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range load(t) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.overlay(t, root)
		})
	}
}

// ruleRow is a row of the table of rules.
var ruleRow = regexp.MustCompile(`(?m)^\| ([A-Z]{3}-[1-9][0-9]*) \|`)

// Each rule that is built is broken by at least one.
func TestMutants_OneForEachRule(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(filepath.Join("..", "..", "docs", "requirements.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := ruleRow.FindAllStringSubmatch(string(table), -1)
	if len(rows) == 0 {
		t.Fatal("docs/requirements.md names no rule")
	}
	all := load(t)
	for _, row := range rows {
		if !slices.ContainsFunc(all, func(m mutant) bool { return slices.Contains(m.rules, row[1]) }) {
			t.Errorf("no mutant breaks %s", row[1])
		}
	}
}

// A runner that calls everything noticed would prove nothing: a patch that
// breaks nothing lives, and one that no longer fits is told.
func TestMutants_CanFail(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]struct{ text, says string }{
		"whole":         {"Rules: LEA-4\nTest: ./store TestX\n\nWords.\n\n--- a/x.go\n+++ b/x.go\n", ""},
		"no diff":       {"Rules: LEA-4\nTest: ./store TestX\n\nWords.\n", "no diff"},
		"no words":      {"Rules: LEA-4\nTest: ./store TestX\n\n--- a/x.go\n+++ b/x.go\n", "in words"},
		"no test":       {"Rules: LEA-4\n\nWords.\n\n--- a/x.go\n+++ b/x.go\n", "must say"},
		"no such rules": {"Rules: lea4\nTest: ./store TestX\n\nWords.\n\n--- a/x.go\n+++ b/x.go\n", "must say"},
	} {
		path := filepath.Join(t.TempDir(), "m.patch")
		if err := os.WriteFile(path, []byte(s.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(path); (err == nil) != (s.says == "") || err != nil && !strings.Contains(fmt.Sprint(err), s.says) {
			t.Errorf("%s: %v, want %q", name, err, s.says)
		}
	}
}
