package tool

import "unicode/utf8"

// tailSegments bounds how many segments a tail keeps: two streams that take
// turns byte by byte would else cost far more memory than their bytes.
const tailSegments = 64 << 10

// segment is text of one stream, in order of arrival.
type segment struct {
	stream string
	text   []byte
}

// tail keeps the last max bytes of what is added, in whole characters.
type tail struct {
	max     int64
	size    int64
	dropped int64
	queue   []segment // queue[head:] is kept
	head    int
	spare   []byte // the buffer of a segment that was dropped
}

// add appends text and drops from the front what is too much.
func (t *tail) add(stream, text string) {
	for text != "" {
		last := t.last(stream)
		room := pieceBytes
		if last != nil {
			room -= len(last.text)
		}
		n := cutText(text, room)
		if n == 0 || last == nil {
			n = cutText(text, pieceBytes)
			t.queue = append(t.queue, segment{stream: stream, text: t.buffer(n)})
			last = &t.queue[len(t.queue)-1]
		}
		last.text = append(last.text, text[:n]...)
		t.size += int64(n)
		text = text[n:]
		t.trim()
	}
}

// last returns the newest segment if it is of stream.
func (t *tail) last(stream string) *segment {
	if t.head == len(t.queue) || t.queue[len(t.queue)-1].stream != stream {
		return nil
	}
	return &t.queue[len(t.queue)-1]
}

// buffer returns room for a new segment; a flood uses the dropped ones again.
func (t *tail) buffer(n int) []byte {
	if n < pieceBytes/2 || t.spare == nil {
		return nil
	}
	b := t.spare
	t.spare = nil
	return b[:0]
}

func (t *tail) trim() {
	for t.size > t.max || len(t.queue)-t.head > tailSegments {
		front := &t.queue[t.head]
		drop := len(front.text)
		if excess := t.size - t.max; excess > 0 && excess < int64(drop) {
			drop = int(excess)
			for drop < len(front.text) && !utf8.RuneStart(front.text[drop]) {
				drop++
			}
		}
		t.size -= int64(drop)
		t.dropped += int64(drop)
		if drop < len(front.text) {
			front.text = front.text[drop:]
			continue
		}
		t.spare = front.text
		*front = segment{}
		t.head++
	}
	if t.head > len(t.queue)/2 {
		t.queue = append(t.queue[:0], t.queue[t.head:]...)
		t.head = 0
	}
}
