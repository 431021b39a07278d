package shim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// checkContiguous proves that offsets tell the truth about gaps.
func checkContiguous(t *testing.T, pieces []tool.Piece) (text string) {
	t.Helper()
	var next int64
	for i, p := range pieces {
		next += p.Dropped
		if p.Offset != next {
			t.Fatalf("piece %d: got offset %d, want %d", i, p.Offset, next)
		}
		next += int64(len(p.Text))
		text += p.Text
	}
	return text
}

// boundaries returns the offsets of a spool's frames, its end included.
func boundaries(t *testing.T, path string) []int64 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int64{0}
	for at := 0; at < len(data); {
		_, n := parseFrame(data[at:])
		if n == 0 {
			t.Fatalf("no frame at %d of %d", at, len(data))
		}
		at += n
		ends = append(ends, int64(at))
	}
	return ends
}

// chatty prints in small pieces, each in a frame of its own, with two like lines.
const chatty = `i=0; while [ $i -lt 8 ]; do echo "line $((i/2))"; [ $((i%2)) = 0 ] || echo "err $i" >&2; i=$((i+1)); sleep 0.12; done`

// proves COO-7: who reads on from a committed offset reads each piece once, at every
// frame, while the command runs.
func TestFollow_ExactlyOnceOverReattachments(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, chatty))
	whole := follow(t.Context(), c, 0, newKept()) // is disturbed by none of the others
	k := newKept()
	var from int64
	stop := errors.New("the server is killed")
	for n := 0; ; n++ {
		again := mustAttach(t, r, c.ID())
		exit, err := again.Follow(t.Context(), from, func(pieces []tool.Piece, next int64) error {
			if n%2 == 0 && len(k.ends) > 0 && k.ends[len(k.ends)-1] != from {
				t.Errorf("got offset %d, want to go on at %d", from, k.ends[len(k.ends)-1])
			}
			_ = k.take(pieces, next)
			from = next
			return stop
		})
		_ = again.Close()
		if err == nil {
			wantExit(t, exit, 0)
			break
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
	}
	wantExit(t, awaitExit(t, whole), 0)
	checkContiguous(t, k.pieces)
	want := ""
	for i := range 8 {
		want += fmt.Sprintf("line %d\n", i/2)
	}
	if k.text["stdout"] != want || strings.Count(k.text["stderr"], "err") != 4 {
		t.Errorf("got %q", k.text)
	}
	if len(k.ends) < 4 {
		t.Errorf("got %d deliveries: it wasn't followed while it ran", len(k.ends))
	}
}

// proves COO-7: an offset is one of a whole frame, and what was given before it isn't
// given again, at any frame.
func TestFollow_FromEveryFrame(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "head -c 150000 /dev/zero | tr '\\0' x; echo; "+chatty))
	_, all := mustFollow(t, c)
	ends := boundaries(t, r.path(c.ID(), spoolName))
	if len(ends) != len(all.pieces)+1 || len(all.pieces) < 2*batchPieces {
		t.Fatalf("got %d pieces, %d frames", len(all.pieces), len(ends)-1)
	}
	for i, from := range ends {
		k := newKept()
		exit := awaitExit(t, follow(t.Context(), c, from, k))
		wantExit(t, exit, 0)
		if fmt.Sprint(k.pieces) != fmt.Sprint(all.pieces[i:]) {
			t.Errorf("from frame %d: got %d pieces, want %d", i, len(k.pieces), len(all.pieces)-i)
		}
		read := newKept()
		if err := r.Read(t.Context(), c.ID(), from, read.take); err != nil || fmt.Sprint(read.pieces) != fmt.Sprint(k.pieces) {
			t.Errorf("read from frame %d: got %d pieces, %v", i, len(read.pieces), err)
		}
		for at, before := 0, from; at < len(k.ends); at++ {
			if k.ends[at] <= before {
				t.Errorf("from frame %d: offsets go back: %v", i, k.ends)
			}
			before = k.ends[at]
		}
	}
}

// proves COO-7: a frame that isn't whole is none, wherever it was cut.
func TestSpool_TornFrames(t *testing.T) {
	t.Parallel()
	pieces := []tool.Piece{
		{Stream: "stdout", Text: "same\n"},
		{Stream: "stdout", Offset: 5, Text: "same\n"},
		{Stream: "stderr", Offset: 110, Dropped: 100, Binary: true, Text: "\x00\xff"},
	}
	var data []byte
	ends := []int64{0}
	for _, p := range pieces {
		data = appendFrame(data, p)
		ends = append(ends, int64(len(data)))
	}
	path := filepath.Join(t.TempDir(), "spool")
	read := func(what string, data []byte, whole int) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSpool(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		k := newKept()
		at, err := s.deliver(t.Context(), k.take)
		if err != nil || at != ends[whole] || fmt.Sprint(k.pieces) != fmt.Sprint(pieces[:whole]) && whole > 0 {
			t.Errorf("%s: got %v to %d, %v, want %d frames", what, k.pieces, at, err, whole)
		}
	}
	for n := range data {
		whole := 0
		for ends[whole+1] <= int64(n) {
			whole++
		}
		read(fmt.Sprintf("cut at %d", n), data[:n], whole)
		zeroed := append(append([]byte(nil), data[:n]...), make([]byte, len(data)-n)...)
		if string(zeroed[:ends[whole+1]]) != string(data[:ends[whole+1]]) {
			read(fmt.Sprintf("zero from %d", n), zeroed, whole)
		}
		flipped := append([]byte(nil), data...)
		flipped[n] ^= 0x10
		read(fmt.Sprintf("flipped at %d", n), flipped, whole)
	}
	read("whole", data, len(pieces))
}

// proves COO-7: a record that says more than the disk kept is still the outcome.
func TestFollow_TellsWhatTheDiskLost(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "echo one; sleep 0.2; echo two; exit 3"))
	mustFollow(t, c)
	ends := boundaries(t, r.path(c.ID(), spoolName))
	if err := os.Truncate(r.path(c.ID(), spoolName), ends[len(ends)-1]-1); err != nil {
		t.Fatal(err)
	}
	exit, k := mustFollow(t, c)
	if exit.ExitCode == nil || *exit.ExitCode != 3 || !strings.Contains(exit.Error, "can't be read") || k.text["stdout"] != "one\n" {
		t.Errorf("got %+v, %q", exit, k.text["stdout"])
	}
}

// proves COO-10: neither who leaves nor whose journal can't be written ends a command.
func TestFollow_EndsWithItsCallerOnly(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "echo up; sleep 1000"))
	ctx, cancel := context.WithCancelCause(t.Context())
	k := newKept()
	up := k.until("up\n")
	done := follow(ctx, c, 0, k)
	await(t, up, "up")
	cause := errors.New("the server is stopped")
	cancel(cause)
	if e := <-done; !errors.Is(e.err, cause) {
		t.Errorf("got %v, want the cause", e.err)
	}
	broken := errors.New("the journal is full")
	if _, err := c.Follow(t.Context(), 0, func([]tool.Piece, int64) error { return broken }); err != broken { //nolint:errorlint // as it is
		t.Errorf("got %v, want the error as it is", err)
	}
	if found, err := r.Find(c.ID()); err != nil || !found.Running {
		t.Errorf("got %+v, %v, want it running", found, err)
	}
}

// proves COO-7: two servers are both served, of whatever process.
func TestFollow_TwoServersAtOnce(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "head -c 300000 /dev/zero | tr '\\0' x; "+chatty))
	other := &Root{dir: r.dir, exe: r.exe}
	k, k2 := newKept(), newKept()
	done, done2 := follow(t.Context(), c, 0, k), follow(t.Context(), mustAttach(t, other, c.ID()), 0, k2)
	wantExit(t, awaitExit(t, done), 0)
	wantExit(t, awaitExit(t, done2), 0)
	if checkContiguous(t, k.pieces) != checkContiguous(t, k2.pieces) {
		t.Error("they read different things")
	}
}

// proves COO-7: clients that connect and never read, or never say what they want, hold
// up nothing.
func TestShim_DeafClientsHoldUpNothing(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	s := specOf(t, "read -r _ <gate; head -c 3000000 /dev/zero | tr '\\0' x; echo end")
	if err := unix.Mkfifo(filepath.Join(s.Dir, "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustStart(t, r, s)
	for _, says := range []string{"", `{"op":"st`, `{"op":"follow"}` + "\n", "nonsense\n", `{"op":"stdin","n":1,"length":100}` + "\nx"} {
		for range 5 {
			conn, err := net.Dial("unix", r.path(c.ID(), sockName))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := conn.Write([]byte(says)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "gate"), []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	exit, k := mustFollow(t, c)
	wantExit(t, exit, 0)
	if len(k.text["stdout"]) != 3000004 {
		t.Errorf("got %d bytes", len(k.text["stdout"]))
	}
}

// proves COO-5: output beyond its bound loses its middle, counted and said, also
// through the spool.
func TestFollow_OutputBound(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	s := specOf(t, "echo begin; head -c 20000000 /dev/zero | tr '\\0' x; echo end")
	s.MaxOutput = 1 << 20
	exit, k := mustFollow(t, mustStart(t, r, s))
	wantExit(t, exit, 0)
	text := checkContiguous(t, k.pieces)
	if exit.OutputBytes != 20000010 || exit.OutputBytes-exit.DroppedBytes != 1<<20 || len(text) != 1<<20 {
		t.Errorf("got %d bytes, %d dropped, %d kept", exit.OutputBytes, exit.DroppedBytes, len(text))
	}
	if !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "xend\n") {
		t.Errorf("got %q … %q", text[:10], text[len(text)-10:])
	}
}

// proves JRN-5: what was read gives its room back, and what comes behind it is read as before.
func TestTrim_GivesBackWhatWasRead(t *testing.T) {
	t.Parallel()
	r := mustRoot(t)
	c := mustStart(t, r, specOf(t, "head -c 300000 /dev/zero | tr '\\0' x"))
	_, all := mustFollow(t, c)
	path := r.path(c.ID(), spoolName)
	ends := boundaries(t, path)
	from := ends[len(ends)/2]
	before := room(t, path)
	if err := r.Trim(c.ID(), from); err != nil {
		t.Fatal(err)
	}
	if after := room(t, path); after > before-from/2 {
		t.Errorf("it takes %d bytes of the disk, and took %d", after, before)
	}
	k := newKept()
	awaitExit(t, follow(t.Context(), c, from, k))
	if fmt.Sprint(k.pieces) != fmt.Sprint(all.pieces[len(ends)/2:]) {
		t.Errorf("got %d pieces behind it, want %d", len(k.pieces), len(all.pieces)-len(ends)/2)
	}
	if err := r.Trim(ID{CallID: "call_none", N: 1}, 1); err != nil {
		t.Errorf("of one that isn't there: %v", err)
	}
}

// room is what a file takes of the disk.
func room(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// unread is a command that prints without end, of which 256 KB may be unread.
func unread(t *testing.T) (r *Root, c *Child) {
	t.Helper()
	r = mustRoot(t)
	spec := specOf(t, "yes a line of some length")
	spec.MaxUnread, spec.MaxOutput = 256<<10, 1<<50
	c = mustStart(t, r, spec)
	for r.spoolSize(t, c.ID()) < spec.MaxUnread { // it is as fast as a disk
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return r, c
}

// What nobody reads fills no disk: the command waits on its pipe. It can be ended all the
// same, and its end is awaited by who reads nothing.
//
// proves COO-7
func TestFollow_UnreadOutputWaits(t *testing.T) {
	t.Parallel()
	_, c := unread(t)
	for range 500 { // time enough for it to print much more
		if _, err := c.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.End("the test ends it", 0); err != nil {
		t.Fatal(err)
	}
	exit, err := c.Await(t.Context())
	if err != nil || exit.Reason != "the test ends it" || exit.Spool > 1<<20 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// It goes on as it is read.
//
// proves COO-7
func TestFollow_ReadOutputGoesOn(t *testing.T) {
	t.Parallel()
	_, c := unread(t)
	enough := errors.New("that much is read")
	_, err := c.Follow(t.Context(), 0, func(_ []tool.Piece, next int64) error {
		if next > 4<<20 {
			return enough
		}
		return c.Read(t.Context(), next)
	})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

func (r *Root) spoolSize(t *testing.T, id ID) int64 {
	t.Helper()
	info, err := os.Stat(r.path(id, spoolName))
	if err != nil {
		t.Error(err)
		return 0
	}
	return info.Size()
}
