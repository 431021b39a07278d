package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a module with a package for each way in which a run can end.
var sample = map[string]string{
	"go.mod": "module sample\n\ngo 1.24\n",
	"pass/pass_test.go": `package pass

import "testing"

func TestA(t *testing.T) {
	t.Log("quiet")
	t.Run("sqlite", func(t *testing.T) {})
	t.Run("postgres", func(t *testing.T) {})
}
func TestB(t *testing.T) {}
`,
	"fail/fail_test.go": `package fail

import "testing"

func TestGood(t *testing.T) { t.Log("good's secret") }
func TestBad(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Error("one is off") })
	t.Run("two", func(t *testing.T) {})
}
`,
	"skip/skip_test.go": `package skip

import "testing"

func TestOn(t *testing.T) {}
func TestOff(t *testing.T) { t.Skip("no database") }
`,
	"none/none.go":                "package none\n",
	"broken/broken_test.go":       "package broken\n\nvar x int = \"text\"\n",
	"dies/dies_test.go":           "package dies\n\nimport \"testing\"\n\nfunc TestDies(t *testing.T) { panic(\"boom\") }\n",
	"main/main_test.go":           "package main\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(3) }\nfunc TestFine(t *testing.T) {}\n",
	"unmatched/unmatched_test.go": "package unmatched\n\nimport \"testing\"\n\nfunc TestC(t *testing.T) {}\n",
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range sample {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for _, tt := range []struct {
		name  string
		flags []string
		args  []string
		code  int
		says  []string
		not   []string
	}{
		{
			name: "a pass counts its subtests",
			args: []string{"./pass"}, code: 0,
			says: []string{"ok    sample/pass", "3 passed, 0 failed, 0 skipped in"}, not: []string{"quiet"},
		},
		{
			name: "show prints what passing tests say", flags: []string{"-show"},
			args: []string{"./pass"}, code: 0, says: []string{"quiet"}, not: []string{"=== RUN", "--- PASS"},
		},
		{
			name: "a failure prints its own output only",
			args: []string{"./fail"}, code: 1,
			says: []string{"FAIL  sample/fail", "one is off", "2 passed, 1 failed, 0 skipped in"}, not: []string{"good's secret"},
		},
		{
			name: "a skip fails",
			args: []string{"./skip"}, code: 1,
			says: []string{"SKIP  sample/skip.TestOff", "no database", "a skipped test proves nothing", "1 passed, 0 failed, 1 skipped in"},
		},
		{
			name: "no test files fails",
			args: []string{"./none"}, code: 1, says: []string{"no test ran", "0 passed, 0 failed, 0 skipped in"},
		},
		{
			name: "no match fails",
			args: []string{"-run", "TestNobody", "./unmatched"}, code: 1, says: []string{"no test ran"},
		},
		{
			name: "an unknown package fails",
			args: []string{"./nowhere"}, code: 1, says: []string{"0 passed, 1 failed"},
		},
		{
			name: "a package that does not compile counts as one failure",
			args: []string{"./broken", "./pass"}, code: 1,
			says: []string{"FAIL  sample/broken", "cannot use", "3 passed, 1 failed, 0 skipped in"},
		},
		{
			name: "a panic is shown", args: []string{"./dies"}, code: 1,
			says: []string{"panic: boom", "0 passed, 1 failed, 0 skipped in"},
		},
		{
			name: "a failing TestMain counts as one failure", args: []string{"./main"}, code: 1,
			says: []string{"1 passed, 1 failed, 0 skipped in"},
		},
		{
			name: "a want that ran", flags: []string{"-want", "SQLite", "-want", "Postgres"},
			args: []string{"./pass"}, code: 0, says: []string{"3 passed, 0 failed, 0 skipped in"},
		},
		{
			name: "a want that did not run", flags: []string{"-want", "mysql"},
			args: []string{"./pass"}, code: 1, says: []string{"no test ran that matches (?i)mysql"},
		},
		{
			name: "an unknown flag", flags: []string{"-nonsense"}, code: 2, says: []string{"-nonsense"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tally := filepath.Join(t.TempDir(), "tally")
			argv := append([]string{"-C", dir, "-tally", tally}, tt.flags...)
			var out strings.Builder
			code := run(context.Background(), append(append(argv, "--"), tt.args...), &out, &out)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, s := range tt.says {
				if !strings.Contains(out.String(), s) {
					t.Errorf("does not say %q", s)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(out.String(), s) {
					t.Errorf("says %q", s)
				}
			}
			if _, err := os.Stat(tally); tt.code != 2 && err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Logf("output:\n%s", out.String())
			}
		})
	}
}

// Long output keeps its head and its tail, and says what it left out.
func TestReport_LongOutput(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := newReport(&out, false)
	lines := strings.SplitAfter(strings.Repeat("x\n", longest+9)+"end", "\n")
	r.lines(lines)
	if got, want := strings.Count(out.String(), "\n"), longest+1; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	if !strings.Contains(out.String(), "10 lines left out") || !strings.HasSuffix(out.String(), "end\n") {
		t.Errorf("output:\n%s", out.String())
	}
}
