package handlers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

const (
	streamPage   = 50              // events that are read at once for one reader
	readDeadline = 5 * time.Second // of one read for a stream
	lastWords    = time.Second     // what a stream still gets to say when the server stops
)

// errGone ends a stream whose reader is not there any more, or is too slow.
var errGone = errors.New("the reader is gone")

// always is ready at once, for the loop that has more to read.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// streamMessage is one message of a stream: an event, as who reads it wants it.
type streamMessage struct {
	seq  int64
	text []byte // framed; other streams may send the same
}

// feed gives what comes after a seq, at most a page of it, and the head at that
// moment. It runs after the handler has returned, so it may know nothing of the
// request.
type feed interface {
	// read reads it from the journal.
	read(ctx context.Context, f *store.Follower, after int64) (list []streamMessage, head int64, err error)
	// latest gives it without a read, if it was committed here just now; else ok is false.
	latest(f *store.Follower, after int64) (list []streamMessage, head int64, ok bool, err error)
}

// follow answers with a stream of the session's events after a seq (RDR-2): what
// is in the journal, then what comes. It refuses a cursor beyond the head, and
// a session that isn't the owner's, before the stream begins.
func (s *Server) follow(c *fiber.Ctx, id string, after int64, feed feed) error {
	who := current(c)
	if _, err := s.store.EventsAfter(c.UserContext(), who.User.ID, id, after, 1); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-cache, no-transform")
	c.Set("X-Accel-Buffering", "no")
	if c.Method() == fiber.MethodHead {
		return nil
	}
	// The connection ends with the stream, and with it the deadline that the stream has put on it.
	c.Context().SetConnectionClose()
	// Else the server would put its own deadline over the stream's first one.
	if err := c.Context().SetWriteDeadline(time.Now().Add(s.flushTime)); err != nil {
		return err
	}
	// Nothing of c may be used below: fiber gives it to another request when this handler returns.
	st := &stream{
		s: s, who: who, session: strings.Clone(id), sent: after, feed: feed, conn: c.Context().Conn(),
		ctx: context.WithoutCancel(c.UserContext()), requestID: requestID(c),
		ticks: make(chan string, 1),
	}
	c.Context().SetBodyStreamWriter(st.run)
	return nil
}

// stream is one reader of one session.
type stream struct {
	s         *Server
	who       identity
	session   string
	sent      int64 // the seq up to which the reader has all
	feed      feed
	follower  *store.Follower
	conn      net.Conn
	ctx       context.Context
	requestID string
	ticks     chan string // of the watch: "", or why the reader may not read any more
	beats     int
	failing   bool // the journal couldn't be read; said once
}

// run is the body of the answer: the one goroutine that fasthttp starts for it.
func (st *stream) run(w *bufio.Writer) {
	st.s.streams.Add(1)
	defer st.s.streams.Add(-1)
	defer func() { // a panic here would end the whole process
		if p := recover(); p != nil {
			st.s.log.Error("stream panicked", slog.String("request_id", st.requestID), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
	}()
	st.s.track(st)
	defer st.s.untrack(st)
	if err := st.loop(w); err != nil && !errors.Is(err, errGone) {
		st.s.log.Error("stream failed", slog.String("request_id", st.requestID), slog.String("session_id", st.session), slog.Any("error", err))
	}
}

// loop reads a bounded page, writes it, and waits: for a commit, for the watch,
// which looks for all streams what each would have to look for now and then, or
// for an end.
func (st *stream) loop(w *bufio.Writer) error {
	st.follower = st.s.store.Follow(st.who.User.ID, st.session) // first, then read: no commit is missed
	defer st.follower.Close()
	end := time.NewTimer(st.s.opts.StreamMax)
	defer end.Stop()

	if _, err := io.WriteString(w, "retry: 1000\n\n"); err != nil {
		return errGone
	}
	for {
		more, err := st.page(w)
		if err != nil {
			return err
		}
		if over, err := st.wait(w, more, end.C); over || err != nil {
			return err
		}
	}
}

// wait returns when there is something to read, or may be.
func (st *stream) wait(w *bufio.Writer, more bool, end <-chan time.Time) (over bool, err error) {
	next := st.follower.C()
	if more {
		next = always
	}
	var again <-chan time.Time
	if st.failing {
		again = time.After(st.s.pollTime)
	}
	for {
		select {
		case <-st.s.stop:
			return true, st.say(w, "bye", `{"reason":"server_stopping"}`)
		case <-end:
			return true, nil // the reader resumes
		case gone := <-st.ticks:
			if over, err := st.beat(w, gone); over || err != nil {
				return true, err
			}
		case <-next:
			return false, nil
		case <-again:
			return false, nil
		}
	}
}

// page writes what was committed after what was sent, at most a page of it.
func (st *stream) page(w *bufio.Writer) (more bool, err error) {
	list, head, err := st.messages()
	if err != nil {
		return false, st.unreadable(err)
	}
	store.Crash("sse.read")
	st.s.pages.Add(1)
	st.failing = false
	for _, m := range list {
		if err := st.s.extend(st.conn); err != nil { // what doesn't fit into w is written now
			return false, errGone
		}
		if _, err := w.Write(m.text); err != nil {
			return false, errGone
		}
		st.sent = m.seq
	}
	if w.Buffered() > 0 {
		err = st.flush(w)
	}
	store.Crash("sse.sent")
	return st.sent < head, err
}

// messages gives the page that comes next.
func (st *stream) messages() ([]streamMessage, int64, error) {
	if list, head, ok, err := st.feed.latest(st.follower, st.sent); ok || err != nil {
		return list, head, err
	}
	ctx, cancel := context.WithTimeout(st.ctx, readDeadline)
	defer cancel()
	return st.feed.read(ctx, st.follower, st.sent)
}

// unreadable lets a stream wait while the journal can't be read: its reader
// misses the heartbeats, and everything goes on where it was.
func (st *stream) unreadable(err error) error {
	if !journal.Is(err, journal.Unavailable) {
		return err
	}
	if !st.failing {
		st.s.log.Warn("stream waits for the journal", slog.String("request_id", st.requestID), slog.String("session_id", st.session), slog.Any("error", err))
	}
	st.failing = true
	return nil
}

// beat looks whether the reader is there, and hears whether it still may read;
// every second time it writes the heartbeat, if the journal could be read lately.
// over: the stream has said that it is gone.
func (st *stream) beat(w *bufio.Writer, gone string) (over bool, err error) {
	if hungUp(st.conn) {
		return true, errGone
	}
	if gone != "" {
		return true, st.say(w, "gone", gone)
	}
	if st.beats++; st.beats%2 != 0 {
		return false, nil
	}
	head, now, ok := st.follower.Pulse()
	if !ok {
		return false, nil
	}
	return false, st.say(w, "hb", `{"head":`+strconv.FormatInt(max(head, st.sent), 10)+`,"now":"`+timeJSON(now)+`"}`)
}

func (st *stream) say(w *bufio.Writer, name, data string) error {
	if _, err := w.Write(framed(0, name, data)); err != nil {
		return errGone
	}
	return st.flush(w)
}

// flush hands over what was written. A reader who takes nothing for long is
// dropped: it can resume, and nothing is kept for it (RDR-3).
func (st *stream) flush(w *bufio.Writer) error {
	if err := st.s.extend(st.conn); err != nil {
		return errGone
	}
	if err := w.Flush(); err != nil {
		return errGone
	}
	return nil
}

// eventFeed gives events as programs read them, without what the owner's secrets hide.
type eventFeed struct {
	st    *store.Store
	owner string
}

func (r eventFeed) read(ctx context.Context, f *store.Follower, after int64) ([]streamMessage, int64, error) {
	list, head, err := f.After(ctx, after, streamPage)
	if err != nil {
		return nil, 0, err
	}
	out, err := r.messages(list)
	return out, head, err
}

func (r eventFeed) latest(f *store.Follower, after int64) ([]streamMessage, int64, bool, error) {
	list, head, ok := f.Tail(after, streamPage)
	if !ok {
		return nil, 0, false, nil
	}
	out, err := r.messages(list)
	return out, head, true, err
}

func (r eventFeed) messages(list []*store.Entry) ([]streamMessage, error) {
	out, clean := make([]streamMessage, len(list)), r.st.Cleaner(r.owner)
	for i, e := range list {
		text, err := r.message(e, clean)
		if err != nil {
			return nil, fmt.Errorf("encode event #%d: %w", e.Seq, err)
		}
		out[i] = streamMessage{e.Seq, text}
	}
	return out, nil
}

// message is an event as its readers have it. What was recorded before a secret in it
// was known is made for each of them anew.
func (eventFeed) message(e *store.Entry, clean *journal.Cleaner) ([]byte, error) {
	data, err := clean.Event(&e.Event)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(data, e.Data) {
		return e.Form(func(ev *journal.Event) ([]byte, error) { return eventMessage(ev, ev.Data) })
	}
	return eventMessage(&e.Event, data)
}

func eventMessage(e *journal.Event, body json.RawMessage) ([]byte, error) {
	data, err := journal.Encode(newEventJSON(e, body))
	return framed(e.Seq, string(e.Kind), string(data)), err
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// framed is one message as a stream sends it. Each line of data stands behind its
// field's name, so that no text can forge another field or message. id 0: none.
func framed(id int64, name, data string) []byte {
	b := make([]byte, 0, len(data)+len(name)+64)
	if id > 0 {
		b = append(strconv.AppendInt(append(b, "id: "...), id, 10), '\n')
	}
	b = append(b, "event: "+strings.Map(printable, name)+"\n"...)
	for line := range strings.SplitSeq(lineEnds.Replace(data), "\n") {
		b = append(append(append(b, "data: "...), line...), '\n')
	}
	return append(b, '\n')
}

// extend gives the reader of a stream until then to take what was written: fiber's
// own deadline would cut the stream, and none would let dead readers stay for ever.
func (s *Server) extend(conn net.Conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.flushTime
	if s.closed {
		d = min(d, lastWords)
	}
	return conn.SetWriteDeadline(time.Now().Add(d))
}

// endFlushes hurries the streams that are writing when the server stops.
func (s *Server) endFlushes() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for st := range s.open {
		if err := st.conn.SetWriteDeadline(time.Now().Add(lastWords)); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
