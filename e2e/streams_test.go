package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// message is one message of a stream.
type message struct {
	id         int64 // 0: none
	name, data string
}

// stream is one connection of a reader.
type stream struct {
	t      *testing.T
	body   io.ReadCloser
	sc     *bufio.Reader
	status int
	cancel context.CancelFunc
}

// stream opens one; query begins with ? or is empty.
func (c *client) stream(id, query string, headers ...string) *stream {
	c.w.t.Helper()
	st, err := c.tryStream(id, query, headers...)
	if err != nil {
		c.w.t.Fatalf("open a stream: %v", err)
	}
	return st
}

func (c *client) tryStream(id, query string, headers ...string) (*stream, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.w.t.Context()), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/api/v1/sessions/"+id+"/events"+query, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.http.Do(req) //nolint:bodyclose // by close of the stream
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{t: c.w.t, body: res.Body, sc: bufio.NewReader(res.Body), status: res.StatusCode, cancel: cancel}, nil
}

func (st *stream) close() {
	st.cancel()
	_ = st.body.Close()
}

// next reads one message; an error means that the stream has ended.
func (st *stream) next() (message, error) {
	var m message
	var data []string
	for {
		line, err := st.sc.ReadString('\n')
		if err != nil {
			return m, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "":
			if m.name != "" {
				m.data = strings.Join(data, "\n")
				return m, nil
			}
		case "id":
			if m.id, err = strconv.ParseInt(value, 10, 64); err != nil {
				return m, fmt.Errorf("the id %q is no seq", value)
			}
		case "event":
			m.name = value
		case "data":
			data = append(data, value)
		}
	}
}

// upTo reads messages with an id until one has the seq.
func (st *stream) upTo(seq int64) []message {
	st.t.Helper()
	var out []message
	for {
		m, err := st.next()
		if err != nil {
			st.t.Fatalf("the stream ended after %d messages, before %d: %v", len(out), seq, err)
		}
		if m.id == 0 {
			continue
		}
		if out = append(out, m); m.id >= seq {
			return out
		}
	}
}

// wantSlice is I8: a transcript is a contiguous slice of the journal, from after on.
func wantSlice(t *testing.T, j journal, after int64, transcript []message) {
	t.Helper()
	for i, m := range transcript {
		want := after + int64(i) + 1
		if m.id != want {
			t.Fatalf("message %d has the id %d, want %d: once, in order, without a gap", i, m.id, want)
		}
		var e event
		if err := json.Unmarshal([]byte(m.data), &e); err != nil {
			t.Fatalf("event %d: %v", m.id, err)
		}
		if was := j[want-1]; e.ID != was.ID || e.Seq != m.id || e.Kind != m.name || string(e.Data) != string(was.Data) {
			t.Fatalf("the stream says %+v, the journal %+v", e, was)
		}
	}
}

// proves RDR-2 JRN-2
func TestE2E_StreamsFromAnyCursor(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission(steps("echo one\necho two", "printf 'a\\n\\ndata: forged\\nid: 99\\n'", "true"))
		s.prompt(id, steps("true", "echo ä"), "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "ready")
		j := s.events(id)
		read := func(after int64, query string, headers ...string) {
			t.Helper()
			st := s.stream(id, query, headers...)
			defer st.close()
			if st.status != http.StatusOK {
				t.Fatalf("the stream %s answered %d", query, st.status)
			}
			if after < j.last() {
				wantSlice(t, j, after, st.upTo(j.last()))
			}
		}
		for after := range j.last() + 1 {
			read(after, fmt.Sprintf("?after=%d", after))
			read(after, "", "Last-Event-ID", strconv.FormatInt(after, 10))
			if p := s.after(id, after, "0s"); int64(len(p.Events)) != j.last()-after || p.HasMore {
				t.Errorf("after=%d gives %d events of %d", after, len(p.Events), j.last()-after)
			}
		}
		read(0, "")
		// The larger wins.
		read(5, "?after=2", "Last-Event-ID", "5")
		read(5, "?after=5", "Last-Event-ID", "2")

		beyond := s.get(fmt.Sprintf("/api/v1/sessions/%s/events?after=%d", id, j.last()+1), "Accept", "text/event-stream")
		beyond.problem(t, http.StatusBadRequest, "cursor-beyond-head")
		s.get("/api/v1/sessions/"+id+"/events?after=-1").problem(t, http.StatusBadRequest, "")
		// Pages of three, end to end.
		var paged journal
		for more := true; more; {
			p := decode[page](t, s.get(fmt.Sprintf("/api/v1/sessions/%s/events?limit=3&after=%d", id, paged.last())).want(t, http.StatusOK))
			paged, more = append(paged, p.Events...), p.HasMore
		}
		if len(paged) != len(j) {
			t.Errorf("pages of three give %d events, want %d", len(paged), len(j))
		}
	})
}

// follower reads a session's stream, and comes back with what it has whenever it breaks.
type follower struct {
	transcript []message
	connects   int
	done       chan struct{}
}

// follow starts one; it ends when it has read last, which is told on the channel.
func (c *client) follow(id string, last <-chan int64) *follower {
	f := &follower{done: make(chan struct{})}
	broken := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.w.t.Context()), 2*patience)
	go func() { // knows where to end
		defer close(broken)
		select {
		case <-ctx.Done():
		case <-f.done:
		}
	}()
	go func() {
		defer cancel()
		defer close(f.done)
		var until int64
		retry := time.NewTicker(20 * time.Millisecond)
		defer retry.Stop()
		for ctx.Err() == nil {
			f.read(c, id, last, &until)
			if until > 0 && f.last() >= until {
				return
			}
			select {
			case <-retry.C:
			case <-ctx.Done():
			}
		}
	}()
	c.w.t.Cleanup(func() { cancel(); <-broken })
	return f
}

func (f *follower) last() int64 {
	if len(f.transcript) == 0 {
		return 0
	}
	return f.transcript[len(f.transcript)-1].id
}

// read reads one connection to its end, or to where the journal ends.
func (f *follower) read(c *client, id string, last <-chan int64, until *int64) {
	st, err := c.tryStream(id, "", "Last-Event-ID", strconv.FormatInt(f.last(), 10))
	if err != nil {
		select {
		case *until = <-last:
		default:
		}
		return
	}
	defer st.close()
	f.connects++
	for {
		select {
		case *until = <-last:
		default:
		}
		if *until > 0 && f.last() >= *until {
			return
		}
		m, err := st.next()
		if err != nil {
			return
		}
		if m.id > 0 {
			f.transcript = append(f.transcript, m)
		}
	}
}

// proves RDR-2 RDR-5 JRN-2
func TestE2E_AStreamAcrossKills(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission("")
		last := make(chan int64, 1)
		f := s.follow(id, last)
		// What may be run again, so that the mission goes on by itself after each kill.
		read := func(name string) string {
			return "```sh effect=read\necho before " + name + "; " + up.Tell("$$") + "; " + gate.Read() + "; seq 1 200\n```\n"
		}
		for i := range 3 {
			s.prompt(id, read(fmt.Sprint("k", i)), "queue")
			up.Wait()
			s.powerCut()
			s.restart()
			up.Wait()
			gate.Open()
			s.untilKind(id, "turn.ended", i+1)
		}
		s.untilQuiet(id, "ready")
		j := s.events(id)
		last <- j.last()
		s.prompt(id, steps("true"), "queue") // something more, so that the reader looks up
		select {
		case <-f.done:
		case <-time.After(patience):
			t.Fatal("the reader never came to the end")
		}
		s.untilKind(id, "turn.ended", 4)
		s.untilQuiet(id, "ready")
		wantSlice(t, s.events(id), 0, f.transcript)
		if f.connects < 4 {
			t.Errorf("the reader connected %d times; the kills are to break it each time", f.connects)
		}
		if f.last() < j.last() {
			t.Errorf("the reader came to %d of %d", f.last(), j.last())
		}
	})
}

// A reader who takes nothing holds nobody up.
// proves RDR-3
func TestE2E_ASlowReaderSlowsNoRun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission("")
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "GET /api/v1/sessions/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", id, s.addr, w.token)
		if err != nil {
			t.Fatal(err)
		}
		// More than the buffers hold of a socket whose other end acknowledges nothing.
		s.prompt(id, steps("yes 0123456789012345678901234567890123456789 | head -c 1000000"), "queue")
		s.untilQuiet(id, "ready")
		if calls := s.calls(id); len(calls) != 1 || calls[0].State != "succeeded" {
			t.Errorf("calls %+v", calls)
		}
	})
}

// A token that is revoked ends what it has open.
// proves RDR-7 OWN-2
func TestE2E_ARevokedTokenEndsItsStream(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve()
		id := s.mission("")
		reader := s.with(w.newToken("read"))
		st := reader.stream(id, "")
		defer st.close()
		st.upTo(1)
		var tokenID string
		for line := range strings.Lines(w.mustRun("", "token", "list")) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == "read" {
				tokenID = f[0]
			}
		}
		w.mustRun("", "token", "revoke", tokenID)
		began := time.Now()
		for {
			m, err := st.next()
			if err != nil {
				t.Fatalf("the stream ended without a word: %v", err)
			}
			if m.name == "gone" {
				if m.data != "revoked" {
					t.Errorf("it ends because of %q, want revoked", m.data)
				}
				break
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s, want at most 10 s", took)
		}
		reader.get("/api/v1/sessions/"+id).problem(t, http.StatusUnauthorized, "")
	})
}
