package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// proves COO-7: nothing of the command runs before the gate opens, and nothing
// at all if it is abandoned.
func TestCommand_AbandonedRunsNothing(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "echo ran; touch ran")
	c := mustPrepare(t, spec)
	if c.Process().PID == 0 || c.Process().PGID != c.Process().PID {
		t.Errorf("got process %+v", c.Process())
	}
	c.Abandon()
	c.Abandon()
	if _, err := os.Stat(filepath.Join(spec.Dir, "ran")); !errors.Is(err, os.ErrNotExist) || len(k.pieces) > 0 {
		t.Errorf("it ran: %v %v", err, k.pieces)
	}
	if r := c.Run(t.Context()); r.Reason != ReasonStartFailed || r.ExitCode != nil {
		t.Errorf("run after abandon: %s", show(r))
	}
}

// proves COO-4: what is interrupted before it began doesn't begin.
func TestCommand_InterruptedAtItsGateRunsNothing(t *testing.T) {
	t.Parallel()
	spec, _ := specOf(t, "touch ran")
	c := mustPrepare(t, spec)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("lease lost")
	cancel(cause)
	r := c.Run(ctx)
	if r.Reason != ReasonInterrupted || !errors.Is(r.Err, cause) || r.Signal != "SIGKILL" {
		t.Errorf("got %s", show(r))
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran: %v", err)
	}
}

// proves COO-7: a launcher that died at its gate is a failed start.
func TestCommand_StartFails(t *testing.T) {
	t.Parallel()
	spec, _ := specOf(t, "touch ran")
	c := mustPrepare(t, spec)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, c.ended, "the launcher's end")
	if r := c.Run(t.Context()); r.Reason != ReasonStartFailed || r.Signal != "SIGKILL" || r.Err == nil {
		t.Errorf("got %s", show(r))
	}
}

// proves COO-7: what can't start is an error before the dispatch.
func TestPrepare_Refuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Spec){
		"no call":         func(s *Spec) { s.CallID = "" },
		"odd call":        func(s *Spec) { s.CallID = "a b" },
		"no interpreter":  func(s *Spec) { s.Interp = nil },
		"its absence":     func(s *Spec) { s.Interp = []string{"no-such-shell"} },
		"relative folder": func(s *Spec) { s.Dir = "work" },
		"missing folder":  func(s *Spec) { s.Dir = "/no/such/folder" },
		"NUL in env":      func(s *Spec) { s.Env = []string{"A=\x00"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _ := specOf(t, "true")
			change(&spec)
			if c, err := Prepare(spec); err == nil {
				c.Abandon()
				t.Error("got no error")
			}
		})
	}
}

// proves COO-7: the command is as if nothing had launched it.
func TestCommand_EnvironmentIsUntouched(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			spec, k := specOf(t, `umask
pwd -P
cat
echo "call=$HOLDFAST_CALL gate=${HOLDFAST_GATE-none} go=$go words=$WORDS $#"
echo to stderr >&2
exit 7`)
			spec.Interp = []string{shell, "-eu"}
			spec.Env = append(spec.Env, "go=mine", "WORDS=a 'b' \"c\"\n$d", "HOLDFAST_GATE=stale")
			r := run(t, spec)
			wantExit(t, r, 7)
			dir, err := filepath.EvalSymlinks(spec.Dir)
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("0022\n%s\ncall=%s gate=none go=mine words=a 'b' \"c\"\n$d 0\n", dir, spec.CallID)
			if got := k.text["stdout"]; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got, want := k.text["stderr"], "to stderr\n"; got != want {
				t.Errorf("stderr: got %q, want %q", got, want)
			}
			if want := int64(len(want) + len("to stderr\n")); r.OutputBytes != want {
				t.Errorf("got %d bytes, want %d", r.OutputBytes, want)
			}
		})
	}
}

func shells(t *testing.T) []string {
	t.Helper()
	list := []string{"sh"}
	for _, other := range []string{"dash", "bash"} {
		if _, err := exec.LookPath(other); err == nil {
			list = append(list, other)
		}
	}
	return list
}

// proves COO-7: exit codes and signals come through, and -e and -u hold.
func TestCommand_ToldHowItEnded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script, signal string
		code           int
	}{
		{"", "", 0},
		{"#!/bin/sh\nexit 3", "", 3},
		{"false; exit 0", "", 1},
		{"exit 125", "", 125},
		{"no-such-command", "", 127},
		{"kill -9 $$", "SIGKILL", 0},
		{"kill -TERM $$", "SIGTERM", 0},
		{"exec sh -c 'exit 4'", "", 4},
	} {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			spec, _ := specOf(t, tt.script)
			spec.CallID = "call-ended"
			r := run(t, spec)
			if tt.signal == "" {
				wantExit(t, r, tt.code)
			} else if r.Signal != tt.signal || r.ExitCode != nil || r.Reason != "" {
				t.Errorf("got %s, want %s", show(r), tt.signal)
			}
		})
	}
}

// proves COO-7: a script is longer than a command line may be, and its lines
// keep their numbers.
func TestCommand_LongScript(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			spec, k := specOf(t, strings.Repeat(": a line that does nothing and goes on for a while\n", 4096)+"echo end; no-such-command\n")
			spec.Interp = []string{shell, "-eu"}
			wantExit(t, run(t, spec), 127)
			if k.text["stdout"] != "end\n" || !strings.Contains(k.text["stderr"], "4097") {
				t.Errorf("got %q %q, want line 4097", k.text["stdout"], k.text["stderr"])
			}
		})
	}
}

// proves JRN-8, OWN-3: secrets byte by byte, in stderr, and cut characters.
func TestCommand_MasksItsOutput(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, `for c in t o p s e c r e t 1; do printf %s $c; done; echo
echo same; echo same
printf 'x topsecret1 y' >&2
printf '\342\202'; printf '\254\n'
printf 'a\000b\377\n'`)
	spec.Secrets = []string{"topsecret1"}
	wantExit(t, run(t, spec), 0)
	if got, want := k.text["stdout"], "[hidden]\nsame\nsame\n€\na\x00b\xff\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := k.text["stderr"], "x [hidden] y"; got != want {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
	checkContiguous(t, k.pieces)
	for _, p := range k.pieces {
		if p.Binary != (!utf8.ValidString(p.Text) || strings.Contains(p.Text, "\x00")) {
			t.Errorf("piece %q: binary %v", p.Text, p.Binary)
		}
	}
}

// proves COO-5: a flood without a newline costs bounded memory and ends
// nothing.
func TestCommand_FloodLosesItsMiddle(t *testing.T) {
	t.Parallel()
	const total = 200 << 20
	spec, k := specOf(t, fmt.Sprintf("echo begin; head -c %d /dev/zero | tr '\\0' x; echo end", total))
	spec.MaxOutput = 1 << 20
	spec.Secrets = []string{"a-secret-or-two", "another-secret"}
	r := run(t, spec)
	wantExit(t, r, 0)
	text := checkContiguous(t, k.pieces)
	if r.OutputBytes != total+10 || r.OutputBytes-r.DroppedBytes != 1<<20 || len(text) != 1<<20 {
		t.Errorf("got %d bytes, %d dropped, %d kept", r.OutputBytes, r.DroppedBytes, len(text))
	}
	if !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "xend\n") {
		t.Errorf("got %q … %q", text[:10], text[len(text)-10:])
	}
}

// proves COO-4, COO-10: a blocked Output holds the command back, and neither
// keeps an interruption from ending it.
func TestCommand_BackpressureAndInterruption(t *testing.T) {
	t.Parallel()
	spec, _ := specOf(t, "exec yes")
	entered, leave := make(chan struct{}), make(chan struct{})
	calls := 0
	spec.Output = func([]Piece) error {
		if calls++; calls == 1 {
			close(entered)
			<-leave
		}
		return nil
	}
	c := mustPrepare(t, spec)
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, c)
	await(t, entered, "output")
	cancel()
	await(t, c.gone, "the end of a command whose output is blocked")
	close(leave)
	r := await1(t, done)
	if r.Reason != ReasonInterrupted || r.Signal != "SIGTERM" || r.OutputBytes > 1<<20 {
		t.Errorf("got %s, %d bytes", show(r), r.OutputBytes)
	}
}

// proves LEA-12: where nothing can be recorded, nothing goes on.
func TestCommand_OutputFails(t *testing.T) {
	t.Parallel()
	fenced := errors.New("fenced")
	spec, _ := specOf(t, "trap '' TERM; echo x; while :; do sleep 1000; done")
	spec.Output = func([]Piece) error { return fenced }
	r := run(t, spec)
	if r.Reason != ReasonOutputFailed || !errors.Is(r.Err, fenced) || r.Signal != "SIGKILL" {
		t.Errorf("got %s", show(r))
	}
}

// proves COO-4: a shell hears of the end before the command that it waits for
// has ended, so nothing further begins.
func TestCommand_InterruptionStartsNothing(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "echo up; sleep 1000; sleep 1000; touch ran")
	spec.Interp = []string{"sh"}
	up := k.until("up\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, mustPrepare(t, spec))
	await(t, up, "up")
	cancel()
	if r := await1(t, done); r.Signal != "SIGTERM" {
		t.Errorf("got %s", show(r))
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it went on: %v", err)
	}
}

// proves COO-5: a call's time is bounded.
func TestCommand_Timeout(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "trap 'echo bye; exit 0' TERM; sleep 1000 & wait")
	spec.Timeout = 300 * time.Millisecond
	r := run(t, spec)
	if r.Reason != ReasonTimeout || r.Err != nil || r.ExitCode == nil || *r.ExitCode != 0 || k.text["stdout"] != "bye\n" {
		t.Errorf("got %s, output %q", show(r), k.text["stdout"])
	}
}

// proves COO-4: who ignores TERM gets a KILL after the grace.
func TestCommand_KilledAfterItsGrace(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "trap '' TERM; echo up; while :; do sleep 1000; done")
	spec.Grace = 50 * time.Millisecond
	up := k.until("up\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := start(ctx, t, mustPrepare(t, spec))
	await(t, up, "up")
	cancel()
	if r := await1(t, done); r.Reason != ReasonInterrupted || r.Signal != "SIGKILL" || len(r.Survivors) > 0 {
		t.Errorf("got %s", show(r))
	}
}

// proves COO-7: a child that closes its output runs on and is waited for.
func TestCommand_ClosedOutputIsNoEnd(t *testing.T) {
	t.Parallel()
	spec, _ := specOf(t, "exec >&- 2>&-; sleep 0.2; touch ran")
	wantExit(t, run(t, spec), 0)
	if _, err := os.Stat(filepath.Join(spec.Dir, "ran")); err != nil {
		t.Error(err)
	}
}

// proves COO-4: whoever ends a command says why, and how long it has.
func TestCommand_InterruptionSaysWhyAndHow(t *testing.T) {
	t.Parallel()
	spec, k := specOf(t, "trap '' TERM; echo up; while :; do sleep 1000; done")
	spec.Grace = time.Hour
	up := k.until("up\n")
	c := mustPrepare(t, spec)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := start(ctx, t, c)
	await(t, c.Opened(), "its gate")
	await(t, up, "up")
	if got := c.OutputBytes(); got != 3 {
		t.Errorf("got %d bytes, want 3", got)
	}
	cancel(&Interruption{Reason: "orphaned", Grace: 50 * time.Millisecond})
	if r := await1(t, done); r.Reason != "orphaned" || r.Signal != "SIGKILL" || !r.Opened {
		t.Errorf("got %s, opened %v", show(r), r.Opened)
	}
	spec, _ = specOf(t, "touch ran")
	c = mustPrepare(t, spec)
	if r := await1(t, start(ctx, t, c)); r.Reason != "orphaned" || r.Opened {
		t.Errorf("at its gate: got %s, opened %v", show(r), r.Opened)
	}
	select {
	case <-c.Opened():
		t.Error("its gate was opened")
	default:
	}
}

// proves COO-7: a command reads what its caller hands it, through its end.
func TestCommand_Stdin(t *testing.T) {
	t.Parallel()
	for _, shell := range shells(t) {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.Close() }()
			spec, k := specOf(t, "read -r first; echo \"got $first\"; cat")
			spec.Interp, spec.Stdin = []string{shell, "-eu"}, r
			c := mustPrepare(t, spec)
			_ = r.Close()
			first := k.until("got one\n")
			done := start(t.Context(), t, c)
			if _, err := w.WriteString("one\n"); err != nil {
				t.Fatal(err)
			}
			await(t, first, "the first line")
			if _, err := w.WriteString("two\n"); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			wantExit(t, await1(t, done), 0)
			if got, want := k.text["stdout"], "got one\ntwo\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
