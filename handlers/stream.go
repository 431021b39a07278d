package handlers

import (
	"bufio"
	"context"
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
	seq        int64
	name, data string
}

// feed reads what comes after a seq, at most a page of it, and the head at that
// moment. It runs after the handler has returned, so it may know nothing of the
// request.
type feed func(ctx context.Context, after int64) (list []streamMessage, head int64, err error)

// follow answers with a stream of the session's events after a seq (RDR-2): what
// is in the journal, then what comes. It refuses a cursor beyond the head, and
// a session that isn't the owner's, before the stream begins.
func (s *Server) follow(c *fiber.Ctx, id string, after int64, read feed) error {
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
		s: s, who: who, session: strings.Clone(id), sent: after, read: read, conn: c.Context().Conn(),
		ctx: context.WithoutCancel(c.UserContext()), requestID: requestID(c),
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
	read      feed
	conn      net.Conn
	ctx       context.Context
	requestID string
	ticks     int
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
	st.s.track(st.conn)
	defer st.s.untrack(st.conn)
	if err := st.loop(w); err != nil && !errors.Is(err, errGone) {
		st.s.log.Error("stream failed", slog.String("request_id", st.requestID), slog.String("session_id", st.session), slog.Any("error", err))
	}
}

// loop reads a bounded page, writes it, and waits: for a commit, for the poll
// that makes up for a lost wake-up, for the heartbeat, or for an end.
func (st *stream) loop(w *bufio.Writer) error {
	wake, unsubscribe := st.s.store.Subscribe(st.session) // first, then read: no commit is missed
	defer unsubscribe()
	end := time.NewTimer(st.s.opts.StreamMax)
	defer end.Stop()
	poll := time.NewTicker(st.s.pollTime)
	defer poll.Stop()
	// Two ticks make a heartbeat, so that a sign-out is seen well before RDR-7 wants it.
	tick := time.NewTicker(st.s.opts.Heartbeat / 2)
	defer tick.Stop()

	if _, err := io.WriteString(w, "retry: 1000\n\n"); err != nil {
		return errGone
	}
	for {
		more, err := st.page(w)
		if err != nil {
			return err
		}
		next := wake
		if more {
			next = always
		}
		select {
		case <-st.s.stop:
			return st.say(w, "bye", `{"reason":"server_stopping"}`)
		case <-end.C:
			return nil // the reader resumes
		case <-tick.C:
			if over, err := st.beat(w); over || err != nil {
				return err
			}
		case <-next:
		case <-poll.C:
		}
	}
}

// page writes what is in the journal after what was sent, at most a page of it.
func (st *stream) page(w *bufio.Writer) (more bool, err error) {
	ctx, cancel := context.WithTimeout(st.ctx, readDeadline)
	defer cancel()
	list, head, err := st.read(ctx, st.sent)
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
		if err := writeMessage(w, m.seq, m.name, m.data); err != nil {
			return false, err
		}
		st.sent = m.seq
	}
	err = st.flush(w)
	store.Crash("sse.sent")
	return st.sent < head, err
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

// beat looks whether the reader is there and still may read; every second time
// it writes the heartbeat. over: the stream has said that it is gone.
func (st *stream) beat(w *bufio.Writer) (over bool, err error) {
	if hungUp(st.conn) {
		return true, errGone
	}
	ctx, cancel := context.WithTimeout(st.ctx, readDeadline)
	defer cancel()
	gone, err := st.s.still(ctx, st.who)
	if err != nil {
		return false, st.unreadable(err)
	}
	if gone != "" {
		return true, st.say(w, "gone", gone)
	}
	if st.ticks++; st.ticks%2 != 0 {
		return false, nil
	}
	head, now, err := st.s.store.Head(ctx, st.who.User.ID, st.session)
	if err != nil {
		return false, st.unreadable(err)
	}
	return false, st.say(w, "hb", `{"head":`+strconv.FormatInt(head, 10)+`,"now":"`+timeJSON(now)+`"}`)
}

func (st *stream) say(w *bufio.Writer, name, data string) error {
	if err := writeMessage(w, 0, name, data); err != nil {
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

// eventFeed gives events as programs read them.
func (s *Server) eventFeed(owner, session string) feed {
	return func(ctx context.Context, after int64) ([]streamMessage, int64, error) {
		p, err := s.store.EventsAfter(ctx, owner, session, after, streamPage)
		if err != nil {
			return nil, 0, err
		}
		out := make([]streamMessage, 0, len(p.Events))
		for i := range p.Events {
			ev := &p.Events[i]
			data, err := journal.Encode(newEventJSON(ev))
			if err != nil {
				return nil, 0, fmt.Errorf("encode event #%d: %w", ev.Seq, err)
			}
			out = append(out, streamMessage{ev.Seq, string(ev.Kind), string(data)})
		}
		return out, p.Head, nil
	}
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// writeMessage frames one message of a stream. Each line of data stands behind
// its field's name, so that no text can forge another field or message. id 0: none.
func writeMessage(w io.Writer, id int64, name, data string) error {
	var b strings.Builder
	if id > 0 {
		b.WriteString("id: " + strconv.FormatInt(id, 10) + "\n")
	}
	b.WriteString("event: " + strings.Map(printable, name) + "\n")
	for line := range strings.SplitSeq(lineEnds.Replace(data), "\n") {
		b.WriteString("data: " + line + "\n")
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return errGone
	}
	return nil
}

// track remembers the connection of an open stream, so that Shutdown can end a
// flush that waits for a reader who takes nothing.
func (s *Server) track(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[conn] = struct{}{}
}

func (s *Server) untrack(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
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
	for conn := range s.conns {
		if err := conn.SetWriteDeadline(time.Now().Add(lastWords)); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
