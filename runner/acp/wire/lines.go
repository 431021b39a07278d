package wire

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// MaxLine is how many bytes a line may have before its line feed. Agents do send
// lines of 12 MB: a block of text is one message, however long it is.
const MaxLine = 64 << 20

// ErrLineTooLong ends a stream: a line is longer than Lines takes. What it said, an
// answer perhaps, is lost, so the turn that waits for it has failed.
var ErrLineTooLong = errors.New("the agent sent a line that is too long")

// Line is one line of the stream.
type Line struct {
	Bytes []byte    // without its line feed, and a carriage return before it; never written again
	End   int64     // bytes of the stream up to and including its line feed
	Heard time.Time // when it was read; Lines doesn't say
}

// Lines makes lines of a stream that comes in pieces. The zero value is ready.
type Lines struct {
	Max int // bytes a line; 0: MaxLine

	part     []byte   // the end of the line that has no end yet
	blocks   [][]byte // what comes before it: a long line isn't copied each time that it grows
	size     int      // of both
	consumed int64
	err      error
}

// Feed takes the next bytes of the stream, any number of them, and returns the lines
// that end in them. Lines without content are left out; they count as consumed. It
// keeps nothing of p.
//
// ErrLineTooLong comes as soon as a line is longer than Max, beside the lines before
// it, and from then on from each Feed: the stream is over, and nothing of it is held.
func (l *Lines) Feed(p []byte) ([]Line, error) {
	var lines []Line
	for l.err == nil && len(p) > 0 {
		piece, rest, whole := bytes.Cut(p, []byte{'\n'})
		if l.size+len(piece) > l.max() {
			l.drop()
			l.err = fmt.Errorf("%w: more than %d bytes", ErrLineTooLong, l.max())
			break
		}
		l.add(piece)
		if !whole {
			break
		}
		l.consumed += int64(l.size) + 1
		if line := bytes.TrimSuffix(l.whole(), []byte{'\r'}); len(bytes.TrimSpace(line)) > 0 {
			lines = append(lines, Line{Bytes: line, End: l.consumed})
		}
		l.drop()
		p = rest
	}
	return lines, l.err
}

// Last takes what came after the last line feed as a line, since the stream has ended.
// false: there is nothing.
func (l *Lines) Last() (Line, bool) {
	line := bytes.TrimSuffix(l.whole(), []byte{'\r'})
	l.consumed += int64(l.size)
	l.drop()
	return Line{Bytes: line, End: l.consumed}, l.err == nil && len(bytes.TrimSpace(line)) > 0
}

// blockBytes is how many bytes of a line are one block.
const blockBytes = 1 << 20

func (l *Lines) add(piece []byte) {
	if len(l.part) > 0 && len(l.part)+len(piece) > blockBytes {
		l.blocks, l.part = append(l.blocks, l.part), make([]byte, 0, blockBytes)
	}
	l.part = append(l.part, piece...)
	l.size += len(piece)
}

// whole is the line, once its end is known.
func (l *Lines) whole() []byte {
	if len(l.blocks) == 0 {
		return l.part
	}
	return bytes.Join(append(l.blocks, l.part), nil)
}

func (l *Lines) drop() { l.part, l.blocks, l.size = nil, nil, 0 }

func (l *Lines) max() int {
	if l.Max > 0 {
		return l.Max
	}
	return MaxLine
}

// Consumed is how many bytes of the stream are in whole lines, blank ones included.
func (l *Lines) Consumed() int64 { return l.consumed }

// Pending is how many bytes came after the last line feed. At the end of a stream
// they are a line that was cut off.
func (l *Lines) Pending() int { return l.size }
