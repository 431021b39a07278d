package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// feedAll feeds a stream in pieces of a size and returns what lines it had.
func feedAll(l *Lines, stream string, size int) (texts []string, ends []int64, err error) {
	for piece := range slices.Chunk([]byte(stream), size) {
		lines, e := l.Feed(piece)
		clear(piece) // Feed keeps nothing of it
		for _, line := range lines {
			texts, ends = append(texts, string(line.Bytes)), append(ends, line.End)
		}
		if err == nil {
			err = e
		}
	}
	return texts, ends, err
}

func TestLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream  string
		texts   []string
		ends    []int64
		pending int
	}{
		"nothing":                   {},
		"one":                       {"{}\n", []string{"{}"}, []int64{3}, 0},
		"two and a part":            {"{}\n[]\n{\"a", []string{"{}", "[]"}, []int64{3, 6}, 3},
		"no line feed":              {"{}", nil, nil, 2},
		"carriage returns":          {"a\r\nb\rc\r\n", []string{"a", "b\rc"}, []int64{3, 8}, 0},
		"blank lines count":         {"\n\r\n a\n \t\nb\n\n", []string{" a", "b"}, []int64{6, 11}, 0},
		"only blank lines":          {"\n\n\n", nil, nil, 0},
		"characters of many bytes":  {"ä€\n🙂\n", []string{"ä€", "🙂"}, []int64{6, 11}, 0},
		"what isn't text":           {"\x00\xff\n", []string{"\x00\xff"}, []int64{3}, 0},
		"a carriage return pending": {"a\n\r", []string{"a"}, []int64{2}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for size := 1; size <= len(tt.stream)+1; size++ {
				var l Lines
				texts, ends, err := feedAll(&l, tt.stream, size)
				if !slices.Equal(texts, tt.texts) || !slices.Equal(ends, tt.ends) || err != nil {
					t.Errorf("in pieces of %d: got %q at %d, %v, want %q at %d", size, texts, ends, err, tt.texts, tt.ends)
				}
				if l.Pending() != tt.pending || l.Consumed() != int64(len(tt.stream)-tt.pending) {
					t.Errorf("in pieces of %d: %d consumed, %d pending, want %d pending of %d", size, l.Consumed(), l.Pending(), tt.pending, len(tt.stream))
				}
			}
		})
	}
}

// However a stream is cut, its lines and their ends are the same; who begins again at
// an end gets the lines after it.
func TestLines_AnyCut(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var stream strings.Builder
	for i := range 200 {
		stream.WriteString(strings.Repeat("x", r.IntN(60)) + fmt.Sprint(i) + []string{"\n", "\r\n", "\n\n"}[r.IntN(3)])
	}
	var whole Lines
	want, wantEnds, _ := feedAll(&whole, stream.String(), stream.Len())
	if len(want) != 200 {
		t.Fatalf("%d lines, want 200", len(want))
	}
	for range 50 {
		i := r.IntN(len(wantEnds))
		var l Lines
		got, ends, err := feedAll(&l, stream.String()[wantEnds[i]:], 1+r.IntN(100))
		if !slices.Equal(got, want[i+1:]) || err != nil {
			t.Fatalf("after line %d: got %d lines, %v, want %d", i, len(got), err, len(want)-i-1)
		}
		if n := len(ends); n > 0 && ends[n-1]+wantEnds[i] != wantEnds[len(wantEnds)-1] {
			t.Errorf("after line %d: the last ends at %d", i, ends[n-1])
		}
	}
}

func TestLines_TooLong(t *testing.T) {
	t.Parallel()
	for size := 1; size < 20; size++ {
		l := Lines{Max: 4}
		texts, ends, err := feedAll(&l, "1234\nab\n12345\nxy\n", size)
		if !slices.Equal(texts, []string{"1234", "ab"}) || !slices.Equal(ends, []int64{5, 8}) {
			t.Errorf("in pieces of %d: got %q at %d, want the two before the long one", size, texts, ends)
		}
		if !errors.Is(err, ErrLineTooLong) {
			t.Errorf("in pieces of %d: got %v, want ErrLineTooLong", size, err)
		}
		if lines, err := l.Feed([]byte("a\n")); len(lines) > 0 || !errors.Is(err, ErrLineTooLong) {
			t.Errorf("afterwards: got %d lines, %v, want that the stream is over", len(lines), err)
		}
		if l.Consumed() != 8 || l.Pending() != 0 {
			t.Errorf("afterwards: %d consumed, %d held", l.Consumed(), l.Pending())
		}
	}
}

// A line without end is given up before it is whole.
func TestLines_TooLongWithoutEnd(t *testing.T) {
	t.Parallel()
	l := Lines{Max: 1 << 16}
	for fed := 0; ; fed += 4096 {
		_, err := l.Feed(bytes.Repeat([]byte{'x'}, 4096))
		if err != nil && fed < 1<<16 {
			t.Fatalf("after %d bytes: %v", fed, err)
		}
		if err != nil {
			return
		}
		if fed > 1<<16 {
			t.Fatalf("%d bytes were taken", fed)
		}
	}
}

// A line is its own: the next ones don't write into it.
func TestLines_KeepTheirMemory(t *testing.T) {
	t.Parallel()
	var l Lines
	var kept []Line
	for i := range 300 {
		lines, err := l.Feed([]byte(strings.Repeat(string(rune('a'+i%26)), 1+i) + "\n\n"))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, lines...)
	}
	for i, line := range kept {
		if want := strings.Repeat(string(rune('a'+i%26)), 1+i); string(line.Bytes) != want {
			t.Fatalf("line %d became %.20q", i, line.Bytes)
		}
	}
}

// The work for a long line grows with its length: four times the bytes allocate about
// four times as much, where a copy a piece would allocate sixteen times as much.
func TestLines_LongLineIsLinear(t *testing.T) { // alone: what is allocated is counted for the process
	allocated := func(size int) uint64 {
		var before, after runtime.MemStats
		piece := bytes.Repeat([]byte{'x'}, 4096)
		runtime.ReadMemStats(&before)
		feedLong(t, size, piece)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	small, large := allocated(3<<20), allocated(12<<20)
	if large > 6*small || large > 10*12<<20 {
		t.Errorf("3 MB allocate %d KiB and 12 MB %d KiB, want about four times as much", small>>10, large>>10)
	}
}

// feedLong feeds one line of a size in pieces.
func feedLong(t testing.TB, size int, piece []byte) {
	t.Helper()
	var l Lines
	for range size / len(piece) {
		if lines, err := l.Feed(piece); len(lines) > 0 || err != nil {
			t.Fatalf("got %d lines, %v", len(lines), err)
		}
	}
	if lines, err := l.Feed([]byte{'\n'}); len(lines) != 1 || len(lines[0].Bytes) != size || err != nil {
		t.Fatalf("got %d lines, %v, want one of %d bytes", len(lines), err, size)
	}
}

// The speed is the same for each size, if the work is linear.
func BenchmarkLines(b *testing.B) {
	piece := bytes.Repeat([]byte{'x'}, 4096)
	for _, size := range []int{1 << 20, 12 << 20, 48 << 20} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				feedLong(b, size, piece)
			}
		})
	}
}
