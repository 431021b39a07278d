package tool

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// record returns an output without pipes and what it delivered.
func record(bound int64) (*output, *[]Piece) {
	var got []Piece
	o := newOutput(Spec{MaxOutput: bound, Output: func(p []Piece) error {
		got = append(got, p...)
		return nil
	}}, nil, nil)
	return o, &got
}

// checkContiguous proves that offsets tell the truth about gaps.
func checkContiguous(t *testing.T, pieces []Piece) (text string) {
	t.Helper()
	var next int64
	for i, p := range pieces {
		next += p.Dropped
		if p.Offset != next {
			t.Fatalf("piece %d: got offset %d, want %d", i, p.Offset, next)
		}
		if len(p.Text) == 0 || len(p.Text) > pieceBytes || isText(p.Text) == p.Binary {
			t.Fatalf("piece %d: %d bytes, valid %v", i, len(p.Text), utf8.ValidString(p.Text))
		}
		next += int64(len(p.Text))
		text += p.Text
	}
	return text
}

// proves COO-5: past its bound, output loses its middle, counted and said.
func TestOutput_LosesItsMiddle(t *testing.T) {
	t.Parallel()
	o, got := record(1000)
	o.add("stdout", strings.Repeat("a", 400)+strings.Repeat("é", 400))
	o.add("stderr", strings.Repeat("€", 200))
	if len(*got) != 0 {
		t.Fatalf("got %d pieces before 4 KiB and 100 ms", len(*got))
	}
	o.deliverTail()
	text := checkContiguous(t, *got)
	want := strings.Repeat("a", 400) + strings.Repeat("é", 237) + strings.Repeat("€", 41)
	if text != want {
		t.Errorf("got %d bytes %q…, want %d", len(text), text[:20], len(want))
	}
	if got, want := o.tail.dropped, int64(1800-874-123); got != want {
		t.Errorf("dropped: got %d, want %d", got, want)
	}
	if last := (*got)[len(*got)-1]; last.Stream != "stderr" || last.Dropped == 0 {
		t.Errorf("got last piece %+v, want one from stderr that tells the gap", last)
	}
}

// proves JRN-6: neither the end of a piece nor a bound cuts a character in two.
func TestOutput_CutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, bound := range []int64{1000, 1001, 1002, 1 << 20} {
		for _, lead := range []string{"", "a", "ab"} {
			o, got := record(bound)
			o.add("stdout", lead+strings.Repeat("€", 3000))
			o.deliverTail()
			checkContiguous(t, *got)
			for i, p := range *got {
				if p.Binary {
					t.Errorf("bound %d, %d bytes before: piece %d of %d isn't text", bound, len(lead), i, len(*got))
				}
			}
		}
	}
}

// proves COO-5: nothing is lost at the bound itself.
func TestOutput_KeepsAllUpToItsBound(t *testing.T) {
	t.Parallel()
	o, got := record(20000)
	for range 1000 {
		o.add("stdout", "0123456789")
		o.add("stderr", "abcdefghij")
	}
	o.deliverTail()
	want := strings.Repeat("0123456789abcdefghij", 1000)
	if text := checkContiguous(t, *got); text != want || o.tail.dropped != 0 {
		t.Errorf("got %d bytes, %d dropped, want %d and 0", len(text), o.tail.dropped, len(want))
	}
}

// proves COO-5: streams that take turns byte by byte cost no more memory.
func TestOutput_TailBoundsItsSegments(t *testing.T) {
	t.Parallel()
	o, got := record(10 << 20)
	o.tailing = true
	for range 100_000 {
		o.add("stdout", "a")
		o.add("stderr", "b")
	}
	if n := len(o.tail.queue) - o.tail.head; n > tailSegments || cap(o.tail.queue) > 4*tailSegments {
		t.Errorf("got %d segments, capacity %d", n, cap(o.tail.queue))
	}
	o.deliverTail()
	checkContiguous(t, *got)
	if kept := int64(len(*got)); kept+o.tail.dropped != 200_000 {
		t.Errorf("got %d kept, %d dropped", kept, o.tail.dropped)
	}
}

// proves JRN-5: a piece waits for 100 ms, or until there are 4 KiB.
func TestOutput_CoalescesFor100Milliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var ages []time.Duration
		var texts []string
		o := newOutput(Spec{Output: func(ps []Piece) error {
			for _, p := range ps {
				ages = append(ages, time.Since(start))
				texts = append(texts, p.Text)
			}
			return nil
		}}, nil, nil)
		o.pipes = nil
		o.flusher.Go(o.flushLate)
		for range 5 {
			o.add("stdout", "tick")
			<-time.After(10 * time.Millisecond)
		}
		<-time.After(time.Second)
		o.add("stdout", strings.Repeat("x", pieceBytes))
		if _, _, err := o.finish(); err != nil {
			t.Fatal(err)
		}
		if len(ages) != 2 || ages[0] != pieceAge || texts[0] != strings.Repeat("tick", 5) {
			t.Errorf("got %v %.40q, want one piece of all ticks after %v", ages, texts, pieceAge)
		}
		if len(ages) == 2 && ages[1] != 1050*time.Millisecond {
			t.Errorf("4 KiB: delivered after %v, want at once", ages[1])
		}
	})
}

// proves COO-10: a writer outside the call that keeps the pipe open ends
// nothing and holds up nothing; what had been written is read, however long
// delivery was blocked.
func TestOutput_EndsThoughAPipeStaysOpen(t *testing.T) {
	t.Parallel()
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = outW.Close() }()
	errR, errW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = errW.Close()
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	o := newOutput(Spec{Output: func([]Piece) error {
		entered <- struct{}{}
		<-leave
		return nil
	}}, outR, errR)
	o.start()
	if _, err := outW.WriteString(strings.Repeat("y", 60_000)); err != nil {
		t.Fatal(err)
	}
	<-entered                                                // and now the rest waits in its pipe
	if err := outR.SetReadDeadline(time.Now()); err != nil { // as finish does
		t.Fatal(err)
	}
	done := make(chan int64)
	go func() {
		total, _, _ := o.finish()
		done <- total
	}()
	close(leave)
	select {
	case total := <-done:
		if total != 60_000 {
			t.Errorf("got %d bytes, want 60000", total)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("finish hangs")
	}
}

// proves JRN-5: a failure of Output, or its panic, is the run's error.
func TestOutput_FailsOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("journal is full")
	for name, fail := range map[string]func([]Piece) error{
		"error": func([]Piece) error { return broken },
		"panic": func([]Piece) error { panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r2, w2, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			o := newOutput(Spec{Output: fail}, r, r2)
			o.start()
			if _, err := w.WriteString("x"); err != nil {
				t.Fatal(err)
			}
			<-o.failed
			_ = w.Close()
			_ = w2.Close()
			if _, _, err := o.finish(); err == nil || !strings.Contains(err.Error(), broken.Error()) {
				t.Errorf("got %v, want %v", err, broken)
			}
		})
	}
}
