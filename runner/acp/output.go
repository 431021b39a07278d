package acp

import (
	"strings"
	"unicode/utf8"

	"holdfast/journal"
)

// output adds what is new of a tool's output.
func (s *session) output(c *toolCall, now string) {
	s.addOutput(c, c.heard(now, s.t.Cleaner()))
}

// heard gives what stands in the journal next of an output: agents tell the whole of it
// each time, or the last of it. What may be the start of a secret at its end waits for its
// rest, for what goes on otherwise, or for the call's end (JRN-8). What quotes stand behind
// doesn't wait: it is masked.
func (c *toolCall) heard(now string, clean *journal.Cleaner) string {
	if now == "" {
		return ""
	}
	out := ""
	if from := c.goesOn(now, clean); from >= 0 {
		c.rests += now[from:]
	} else {
		out, c.rests = c.waited(clean), now
		if c.shown != "" {
			c.rests = "\n" + now
		}
	}
	c.shown = now
	n := clean.Undecided(c.rests)
	out += clean.Unended(c.rests[:n])
	c.rests = strings.Clone(c.rests[n:])
	return out
}

// showsHeld puts out, hidden, what waits for its rest, if it is all that a call has put out
// that asks whether it may run: it has begun, and what is held back must not hide that. What
// goes on with it is told whole then, and masked as a whole, also after a restart.
func (s *session) showsHeld(c *toolCall) {
	if !c.runs || c.bytes > 0 || c.rests == "" {
		return
	}
	c.rests, c.shown = "", journal.Hidden
	s.addOutput(c, journal.Hidden)
}

// goesOn tells from where on an output is new that goes on with what was heard of it
// before; -1: it doesn't. What waited is dropped if it is masked now, with its rest.
func (c *toolCall) goesOn(now string, clean *journal.Cleaner) int {
	if c.shown == "" {
		return -1
	}
	if strings.HasPrefix(now, c.shown) {
		return len(c.shown)
	}
	if n := slid(c.shown, now); n > 0 {
		return n
	}
	if decided, ok := strings.CutSuffix(c.shown, c.rests); ok && c.rests != "" {
		from := len(decided)
		if !strings.HasPrefix(now, decided) {
			from = slid(decided, now)
		}
		if rest := now[from:]; (from > 0 || decided == "") && strings.HasPrefix(rest[common(rest, c.rests):], journal.Hidden) {
			c.rests = ""
			return from
		}
		return -1
	}
	if masked := clean.Unended(c.shown); strings.HasPrefix(now, masked) {
		return len(masked)
	}
	return -1
}

// common is how many bytes two texts begin with both.
func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// waited gives what waited for its rest, when nothing goes on with it.
func (c *toolCall) waited(clean *journal.Cleaner) string {
	out := clean.Unended(c.rests)
	c.rests = ""
	return out
}

// What is looked at to tell whether a text goes on with the end of another: so many
// bytes, at so many places.
const (
	slidBytes  = 64
	slidPlaces = 64
)

// slid tells how much of the start of what is shown now is the end of what was shown
// before: of long outputs some agents show the last part alone. 0: none, as far as is
// cheap to tell.
func slid(before, now string) int {
	if len(now) < slidBytes {
		return 0
	}
	at := 0
	for range slidPlaces {
		i := strings.Index(before[at:], now[:slidBytes])
		if i < 0 {
			return 0
		}
		if at += i; strings.HasPrefix(now, before[at:]) {
			return len(before) - at
		}
		at++
	}
	return 0
}

// tailShare is the part of the bound that is kept for the end of an output, one in so
// many, as of a command's: it is held until then, and lost if the server dies.
const tailShare = 8

// addOutput adds a piece. What is past the bound loses its middle, counted and said
// (COO-5).
func (s *session) addOutput(c *toolCall, piece string) {
	most := s.t.MaxOutput()
	n := len(piece)
	if room := max(most-most/tailShare-c.kept, 0); int64(n) > room || c.tail != "" {
		n = 0
		if c.tail == "" {
			n = wholeRunes(piece, int(room))
		}
	}
	s.addPieces(c, piece[:n], 0)
	c.bytes += int64(len(piece) - n)
	c.tail += piece[n:]
	if over := len(c.tail) - int(most/tailShare); over > 0 {
		for over < len(c.tail) && !utf8.RuneStart(c.tail[over]) {
			over++
		}
		c.tail = strings.Clone(c.tail[over:])
	}
}

// wholeRunes is how much of the first n bytes of a text are whole characters.
func wholeRunes(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// addPieces adds what stands in the journal next, behind what was dropped.
func (s *session) addPieces(c *toolCall, text string, dropped int64) {
	for _, p := range pieces(text) {
		s.fact(&journal.CallOutput{CallID: c.id, Stream: "stdout", Offset: c.bytes, Text: journal.T(p), Dropped: dropped})
		c.bytes, c.kept, dropped = c.bytes+int64(len(p)), c.kept+int64(len(p)), 0
	}
}

// addTail adds the end of an output, which waited for its rest, or was past its bound.
func (s *session) addTail(c *toolCall) {
	s.addOutput(c, c.waited(s.t.Cleaner()))
	if c.tail == "" {
		return
	}
	text := c.tail
	c.tail = ""
	c.bytes -= int64(len(text))
	dropped := c.bytes - c.kept - c.lost
	c.lost += dropped
	s.addPieces(c, text, dropped)
}

// addTails adds those of all that runs: nobody says how it ended.
func (s *session) addTails() {
	for _, c := range s.ours {
		if !c.ended {
			s.addTail(c)
		}
	}
}

// amount is how many bytes of output a call has, and how many of them were dropped.
type amount struct{ bytes, dropped int64 }

// amounts are those of calls of the journal, with what isn't committed yet.
func (s *session) amounts(calls []journal.Call) map[string]amount {
	out := make(map[string]amount, len(calls))
	for _, c := range calls {
		out[c.ID] = amount{c.OutputBytes, c.DroppedBytes}
	}
	for _, d := range s.drafts {
		if o, ok := d.Body.(*journal.CallOutput); ok {
			was := out[o.CallID]
			out[o.CallID] = amount{max(was.bytes, o.Offset+int64(len(o.Text.S))), was.dropped + o.Dropped}
		}
	}
	return out
}
