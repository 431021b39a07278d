package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/runner/tool"
)

func mustWrite(t *testing.T, c *Child, n int64, data string) {
	t.Helper()
	if err := c.Write(t.Context(), n, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// proves COO-7: frames reach the command in order and once, whoever repeats them.
func TestWrite_EachFrameOnce(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "cat; while ! [ -e go ]; do sleep 0.01; done; echo end")
	s.Stdin = true
	c := mustPrepare(t, r, s)
	mustWrite(t, c, 1, "one\n") // at its gate: it is read later
	if err := c.Go(); err != nil {
		t.Fatal(err)
	}
	k := newKept()
	one := k.until("one\n")
	done := follow(t.Context(), c, 0, k)
	await(t, one, "the first frame")
	other := mustAttach(t, r, c.ID())
	mustWrite(t, other, 1, "one\n") // the next server doesn't know whether it was taken
	mustWrite(t, other, 2, "two\n")
	if err := other.Write(t.Context(), 4, []byte("four\n")); err == nil || !strings.Contains(err.Error(), "the next is 3") {
		t.Errorf("a gap: got %v", err)
	}
	if err := other.Write(t.Context(), 0, []byte("zero\n")); err == nil {
		t.Error("number 0: got no error")
	}
	mustWrite(t, c, 2, "two\n")
	mustWrite(t, c, 3, "\x00\xff\n")
	if st, err := c.Status(t.Context()); err != nil || st.StdinFrames != 3 {
		t.Errorf("got %+v, %v, want 3 frames", st, err)
	}
	for range 2 {
		if err := c.CloseStdin(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Write(t.Context(), 5, nil); err == nil || errors.Is(err, ErrEnded) {
		t.Errorf("after its end: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wantExit(t, awaitExit(t, done), 0)
	if got, want := k.text["stdout"], "one\ntwo\n\x00\xff\nend\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := c.Write(t.Context(), 5, nil); !errors.Is(err, ErrEnded) {
		t.Errorf("after the command's end: got %v, want ErrEnded", err)
	}
}

// proves COO-7: a frame that isn't wanted is answered, however long it is.
func TestWrite_AnswersToLongFrames(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "sleep 1000")
	s.Stdin = true
	c := mustStart(t, r, s)
	big := strings.Repeat("x", 2<<20)
	for range 2 {
		mustWrite(t, c, 1, big)
	}
	if err := c.Write(t.Context(), 3, []byte(big)); err == nil || !strings.Contains(err.Error(), "the next is 2") {
		t.Errorf("a gap: got %v", err)
	}
	none := mustStart(t, r, specOf2(t, "sleep 1000"))
	if err := none.Write(t.Context(), 1, []byte(big)); err == nil || !strings.Contains(err.Error(), "reads no stdin") {
		t.Errorf("no stdin: got %v", err)
	}
}

// proves COO-7: a frame is on the disk when Write returns.
func TestWrite_LogsBeforeItAnswers(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "sleep 1000")
	s.Stdin = true
	c := mustStart(t, r, s)
	mustWrite(t, c, 1, "some words")
	if data, err := os.ReadFile(r.path(c.ID(), stdinName)); err != nil || !strings.HasSuffix(string(data), "some words") {
		t.Errorf("got %q, %v", data, err)
	}
}

// proves COO-7: a frame that didn't arrive whole is none, and its number is free.
func TestWrite_HalfAFrameIsNone(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "cat")
	s.Stdin = true
	c := mustStart(t, r, s)
	conn, err := r.dial(t.Context(), c.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, `{"op":"stdin","n":1,"length":100}`+"\n%s", "a server that is killed"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	mustWrite(t, c, 1, "whole\n")
	if err := c.CloseStdin(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	exit, k := mustFollow(t, c)
	wantExit(t, exit, 0)
	if k.text["stdout"] != "whole\n" {
		t.Errorf("got %q", k.text["stdout"])
	}
}

// proves COO-7: a command that never reads its stdin holds up nothing.
func TestWrite_ToWhoNeverReads(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "trap '' TERM; echo up; while :; do sleep 1000; done")
	s.Stdin = true
	c := mustStart(t, r, s)
	k := newKept()
	up := k.until("up\n")
	done := follow(t.Context(), c, 0, k)
	await(t, up, "up")
	big := strings.Repeat("x", 3<<20)
	for n := range int64(3) {
		mustWrite(t, c, n+1, big)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.StdinFrames != 3 || st.PID != c.Process().PID || st.StartedAt == 0 || st.Deadline != st.StartedAt+time.Hour.Milliseconds() || st.OutputBytes != 3 {
		t.Errorf("got %+v, %v", st, err)
	}
	if err := c.End("enough", 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if exit := awaitExit(t, done); exit.Reason != "enough" || exit.Signal != "SIGKILL" {
		t.Errorf("got %+v", exit)
	}
}

// proves COO-7: who closed its stdin, or has none, is given nothing.
func TestWrite_ToWhoHasNone(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "exec <&-; echo up; sleep 1000")
	s.Stdin = true
	c := mustStart(t, r, s)
	k := newKept()
	up := k.until("up\n")
	follow(t.Context(), c, 0, k)
	await(t, up, "up")
	for n := range int64(3) {
		mustWrite(t, c, n+1, strings.Repeat("x", 1<<20))
	}
	s2 := specOf2(t, "readlink /proc/self/fd/0; sleep 1000")
	c2 := mustStart(t, r, s2)
	if err := c2.Write(t.Context(), 1, []byte("x")); err == nil || !strings.Contains(err.Error(), "reads no stdin") {
		t.Errorf("got %v", err)
	}
	k2 := newKept()
	null := k2.until("/dev/null\n")
	follow(t.Context(), c2, 0, k2)
	await(t, null, "its stdin")
	if err := c.Write(t.Context(), 4, make([]byte, MaxFrame+1)); err == nil || !strings.Contains(err.Error(), "cut it") {
		t.Errorf("got %v", err)
	}
}

// A command that has closed its stdin is told of with the first frame that it didn't
// take, to who asks before and after; one that reads isn't.
//
// proves COO-7 CAL-7
func TestShut_TellsTheFirstFrameThatWasNotTaken(t *testing.T) {
	t.Parallel()
	r, s := mustRoot(t), specOf(t, "read -r l; exec 0<&-; echo shut; sleep 1000")
	s.Stdin = true
	c := mustStart(t, r, s)
	k := newKept()
	shut := k.until("shut\n")
	follow(t.Context(), c, 0, k)
	told := make(chan int64, 1)
	go func() {
		n, err := c.Shut(t.Context())
		if err != nil {
			t.Error(err)
		}
		told <- n
	}()
	mustWrite(t, c, 1, "one\n")
	await(t, shut, "it has closed its stdin")
	mustWrite(t, c, 2, "two\n")
	mustWrite(t, c, 3, "three\n")
	for _, n := range []func() int64{func() int64 { return <-told }, func() int64 { n, _ := mustAttach(t, r, c.ID()).Shut(t.Context()); return n }} {
		if got := n(); got != 2 {
			t.Errorf("it was frame %d, want 2", got)
		}
	}
	// As one of an older build, which doesn't know the question.
	if n, err := mustStart(t, r, specOf2(t, "sleep 1000")).Shut(t.Context()); n != 0 || err != nil {
		t.Errorf("one that can't tell: %d, %v", n, err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if n, err := mustAttach(t, r, c.ID()).Shut(gone); n != 0 || err == nil {
		t.Errorf("whoever left learnt %d, %v", n, err)
	}
}

// A command that lives on without its stdout is told of, to who asks before and after, with
// the place behind all that it wrote there. One that only ends isn't, nor one that has left
// its stdout to another.
//
// proves COO-7 CAL-7
func TestMute_TellsOfWhatLivesWithoutItsStdout(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "echo last; exec 1>&-; while :; do echo on >&2; sleep 0.1; done"))
	if at, muted := c.Muted(); muted {
		t.Errorf("it was told at once: %d", at)
	}
	before, muted, err := c.Mute(t.Context())
	if err != nil || !muted || before == 0 {
		t.Fatalf("told %d, %v, %v", before, muted, err)
	}
	spool, err := openSpool(r.path(c.ID(), spoolName), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer spool.close()
	pieces, _, err := spool.next() // of two streams, in whatever order they came
	if err != nil || !slices.ContainsFunc(pieces, func(p tool.Piece) bool { return p.Stream == "stdout" && p.Text == "last\n" }) {
		t.Errorf("it has spooled %+v, %v", pieces, err)
	}
	later := mustAttach(t, r, c.ID())
	if at, muted := later.Muted(); !muted || at != before {
		t.Errorf("who came later was told %d, %v", at, muted)
	}
	if at, muted, err := later.Mute(t.Context()); err != nil || !muted || at != before {
		t.Errorf("who asked later was told %d, %v, %v", at, muted, err)
	}
	if _, muted, err := mustStart(t, r, specOf2(t, "echo last; exec 1>&-")).Mute(t.Context()); muted || err != nil {
		t.Errorf("of one that has ended: %v, %v", muted, err)
	}
	held := specOf2(t, "sleep 5 & exec 1>&-; wait; exit 0")
	held.N = 3
	if _, muted, err := mustStart(t, r, held).Mute(t.Context()); muted || err != nil {
		t.Errorf("of one whose stdout another has: %v, %v", muted, err)
	}
}
