package tool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pieceBytes = 4 << 10                // a piece's length, and what is delivered at once
	pieceAge   = 100 * time.Millisecond // how old output gets before it is delivered
	readBytes  = 32 << 10

	// batchPieces bounds what is delivered at once: a receiver that commits it
	// holds it in memory.
	batchPieces = 16

	// tailShare is the part of the bound that is kept for the end of the output,
	// one in so many: it is held until then, and lost if the server dies.
	tailShare = 8

	// drainMax bounds what is read after the end of all processes: more than
	// a pipe can hold comes from somebody outside the call, who may never end.
	drainMax = 2 << 20
)

// output carries what a command prints to Spec.Output. Two readers, one a
// pipe, add to it, and a flusher delivers what has waited long enough; mu
// makes them take turns, so that Output is never called twice at a time and a
// blocked one holds back both pipes.
type output struct {
	deliver func([]Piece) error
	secrets []string
	json    bool          // stdout is lines of it
	printed *atomic.Int64 // offset, for who mustn't wait for mu; may be nil
	failed  chan struct{} // closed with the first error
	waiting chan struct{} // pending was empty and isn't any more
	mute    chan struct{} // closed when nothing has stdout any more, and all of it is delivered
	stop    chan struct{}
	pipes   []*os.File
	readers sync.WaitGroup
	flusher sync.WaitGroup

	mu      sync.Mutex
	err     error
	offset  int64 // bytes so far, masked
	live    int64 // how much is delivered as it comes
	sent    int64 // offset of the next piece
	pending []segment
	size    int // bytes in pending
	tail    tail
	tailing bool // that much was delivered: all goes to the tail
}

// newOutput makes the way from two pipes to spec.Output; start begins.
func newOutput(spec Spec, stdout, stderr *os.File) *output {
	bound := spec.MaxOutput
	if bound <= 0 {
		bound = defaultMaxOutput
	}
	deliver := spec.Output
	if deliver == nil {
		deliver = func([]Piece) error { return nil }
	}
	return &output{
		deliver: deliver,
		secrets: spec.Secrets,
		json:    spec.JSON,
		failed:  make(chan struct{}),
		waiting: make(chan struct{}, 1),
		mute:    make(chan struct{}),
		stop:    make(chan struct{}),
		pipes:   []*os.File{stdout, stderr},
		live:    bound - bound/tailShare,
		tail:    tail{max: bound / tailShare},
	}
}

func (o *output) start() {
	for i, stream := range []string{"stdout", "stderr"} {
		o.readers.Go(func() { o.guard(func() { o.read(o.pipes[i], stream) }) })
	}
	o.flusher.Go(func() { o.guard(o.flushLate) })
}

// guard makes a panic, of Output above all, the run's error.
func (o *output) guard(run func()) {
	defer func() {
		if r := recover(); r != nil {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.fail(fmt.Errorf("panic while delivering output: %v", r))
		}
	}()
	run()
}

// read takes one pipe to its end, or, once finish has woken it, to the end of
// what the pipe holds: all that wrote for the call have ended by then, so
// nothing of it is missing, even if somebody else keeps the pipe open.
func (o *output) read(pipe *os.File, stream string) {
	filter := NewFilter(o.secrets)
	if o.json && stream == "stdout" {
		filter = NewJSONFilter(o.secrets)
	}
	buf := make([]byte, readBytes)
	woken := false
	for late := 0; late < drainMax; {
		var n int
		var err error
		if woken {
			n, err = readNow(pipe, buf)
			late += n
		} else {
			n, err = pipe.Read(buf)
		}
		if n > 0 && !o.add(stream, filter.Write(buf[:n])) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !woken {
			// A deadline that is over refuses even what is there.
			woken, err = true, pipe.SetReadDeadline(time.Time{})
		}
		if err != nil {
			if o.add(stream, filter.Flush()) && stream == "stdout" && errors.Is(err, io.EOF) {
				o.mutes()
			}
			return
		}
	}
	o.add(stream, filter.Flush())
}

// mutes delivers what is there, and tells that nothing will come on stdout any more.
func (o *output) mutes() {
	o.mu.Lock()
	o.guardedFlush()
	close(o.mute)
}

// readNow reads without waiting; EAGAIN if there is nothing.
func readNow(pipe *os.File, buf []byte) (n int, err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	once := func(fd uintptr) bool {
		n, err = unix.Read(int(fd), buf)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Read(int(fd), buf)
		}
		return true
	}
	if e := raw.Read(once); e != nil {
		return 0, e
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// add takes masked output and reports whether more is wanted.
func (o *output) add(stream, text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return false
	}
	o.offset += int64(len(text))
	if o.printed != nil {
		o.printed.Store(o.offset)
	}
	if !o.tailing {
		n := cutText(text, int(min(o.live-o.sent-int64(o.size), int64(len(text)))))
		o.queue(stream, text[:n])
		text = text[n:]
		o.tailing = text != ""
	}
	o.tail.add(stream, text)
	if o.size >= pieceBytes {
		o.flush()
	}
	return o.err == nil
}

// queue adds to pending; o.mu is held.
func (o *output) queue(stream, text string) {
	if text == "" {
		return
	}
	if o.size == 0 {
		select {
		case o.waiting <- struct{}{}:
		default:
		}
	}
	if n := len(o.pending); n > 0 && o.pending[n-1].stream == stream {
		o.pending[n-1].text = append(o.pending[n-1].text, text...)
	} else {
		o.pending = append(o.pending, segment{stream: stream, text: []byte(text)})
	}
	o.size += len(text)
}

// flush delivers pending; o.mu is held.
func (o *output) flush() {
	pending := o.pending
	o.pending, o.size = nil, 0
	o.send(pending, 0)
}

// send delivers segments in pieces, several at a time: each delivery may cost
// its receiver a commit. dropped is what was lost before them. o.mu is held.
func (o *output) send(segments []segment, dropped int64) {
	var batch []Piece
	for _, s := range segments {
		for len(s.text) > 0 && o.err == nil {
			n := cutText(s.text, pieceBytes)
			piece := Piece{Stream: s.stream, Offset: o.sent + dropped, Text: string(s.text[:n]), Dropped: dropped}
			piece.Binary = !isText(piece.Text)
			o.sent += dropped + int64(n)
			dropped = 0
			s.text = s.text[n:]
			if batch = append(batch, piece); len(batch) == batchPieces {
				o.hand(batch)
				batch = nil
			}
		}
	}
	o.hand(batch)
}

// hand gives pieces to Spec.Output; o.mu is held.
func (o *output) hand(batch []Piece) {
	if len(batch) == 0 || o.err != nil {
		return
	}
	if err := o.deliver(batch); err != nil {
		o.fail(fmt.Errorf("deliver output: %w", err))
	}
}

// fail keeps the first error; o.mu is held.
func (o *output) fail(err error) {
	if o.err == nil {
		o.err = err
		close(o.failed)
	}
}

// flushLate delivers what has been pending for pieceAge. A piece that came
// after an early delivery may go sooner, never later.
func (o *output) flushLate() {
	for {
		select {
		case <-o.stop:
			return
		case <-o.waiting:
		}
		age := time.NewTimer(pieceAge)
		select {
		case <-o.stop:
			age.Stop()
			return
		case <-age.C:
		}
		o.mu.Lock()
		o.guardedFlush()
	}
}

// guardedFlush flushes and unlocks, also when Output panics.
func (o *output) guardedFlush() {
	defer o.mu.Unlock()
	o.flush()
}

// finish is called when all processes have ended: it reads what the pipes
// still hold, delivers all of it and the tail, ends every goroutine of start
// and tells what was counted.
func (o *output) finish() (total, dropped int64, err error) {
	for _, p := range o.pipes {
		_ = p.SetReadDeadline(time.Now()) // wakes its reader
	}
	o.readers.Wait()
	close(o.stop)
	o.flusher.Wait()
	o.guard(o.deliverTail)
	for _, p := range o.pipes {
		_ = p.Close()
	}
	return o.offset, o.tail.dropped, o.err
}

func (o *output) deliverTail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flush()
	o.send(o.tail.queue[o.tail.head:], o.tail.dropped)
}
