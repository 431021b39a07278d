package handlers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// message is one of a stream, as a browser's EventSource reads it.
type message struct {
	id, event, data string
}

// reader is an open stream.
type reader struct {
	t    *testing.T
	res  *http.Response
	in   *bufio.Reader
	stop context.CancelFunc
}

// open begins to read a session's stream over a real connection.
func (w *world) open(t *testing.T, session, query string, opts ...option) *reader {
	t.Helper()
	return w.openAt(t, "/api/v1/sessions/"+session+"/events"+query, append(opts, header("Accept", "text/event-stream"))...)
}

func (w *world) openAt(t *testing.T, path string, opts ...option) *reader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range opts {
		o(req)
	}
	res, err := http.DefaultTransport.RoundTrip(req) //nolint:bodyclose // reader.close does
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, res: res, in: bufio.NewReader(res.Body), stop: cancel}
	t.Cleanup(r.close)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("got %d, want a stream", res.StatusCode)
	}
	return r
}

func (r *reader) close() {
	r.stop()
	if err := r.res.Body.Close(); err != nil {
		r.t.Errorf("close the stream: %v", err)
	}
}

// next reads one message; io.EOF is the end of the stream.
func (r *reader) next() (m message, err error) {
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return m, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
			m.data += value + "\n"
		case "": // the end of a message
			if m.data != "" {
				m.data = strings.TrimSuffix(m.data, "\n")
				return m, nil
			}
			m = message{}
		}
	}
}

func (r *reader) mustNext() message {
	r.t.Helper()
	m, err := r.next()
	if err != nil {
		r.t.Fatalf("read the stream: %v", err)
	}
	return m
}

// event reads the next event of the journal, past heartbeats.
func (r *reader) event() message {
	r.t.Helper()
	for {
		if m := r.mustNext(); m.event != "hb" {
			return m
		}
	}
}

// until reads to a message of that name, which must come.
func (r *reader) until(name string) message {
	r.t.Helper()
	for {
		if m := r.mustNext(); m.event == name {
			return m
		}
	}
}

// ended fails unless the stream ends now.
func (r *reader) ended() {
	r.t.Helper()
	if m, err := r.next(); !errors.Is(err, io.EOF) {
		r.t.Errorf("after the end: got %v, %v", m, err)
	}
}

func quick(o *Options) { o.Heartbeat = 60 * time.Millisecond }

func TestStream_Resume(t *testing.T) {
	// proves RDR-2
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		id := w.session(t, w.alice)
		const n = 12
		for i := range n - 1 {
			storetest.MustPrompt(t, w.store, w.alice.user.ID, id, fmt.Sprint("prompt ", i), journal.Queue)
		}
		type resume struct {
			after int
			query string
			last  string
		}
		var cases []resume
		for i := range n + 1 {
			cases = append(cases, resume{i, "?after=" + strconv.Itoa(i), ""}, resume{i, "", strconv.Itoa(i)},
				resume{i, "?after=" + strconv.Itoa(i), strconv.Itoa(i / 2)}, resume{i, "?after=" + strconv.Itoa(i/2), strconv.Itoa(i)})
		}
		cases = append(cases, resume{0, "", ""})
		readers := make([]*reader, 0, len(cases))
		for _, c := range cases {
			opts := []option{as(w.alice)}
			if c.last != "" {
				opts = append(opts, header("Last-Event-ID", c.last))
			}
			readers = append(readers, w.open(t, id, c.query, opts...))
		}
		for i := range 3 { // live
			storetest.MustPrompt(t, w.store, w.alice.user.ID, id, fmt.Sprint("live ", i), journal.Queue)
		}
		journalled := storetest.Events(t, w.store, id)
		for i, c := range cases {
			for seq := c.after + 1; seq <= n+3; seq++ {
				m := readers[i].event()
				var ev map[string]any
				if err := json.Unmarshal([]byte(m.data), &ev); err != nil {
					t.Fatalf("%+v: %v in %q", c, err, m.data)
				}
				wantMembers(t, "event", any(ev), eventMembers)
				want := journalled[seq-1]
				if m.id != strconv.Itoa(seq) || ev["seq"] != float64(seq) || m.event != string(want.Kind) || ev["kind"] != m.event || ev["id"] != want.ID {
					t.Fatalf("%+v: got #%s %s, want #%d %s", c, m.id, m.event, seq, want.Kind)
				}
			}
		}
		h := readers[0].res.Header
		if h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-cache, no-transform" || h.Get("X-Accel-Buffering") != "no" || h.Get("Content-Encoding") != "" {
			t.Errorf("got the headers %v", h)
		}
		for _, r := range readers {
			r.close()
		}
		eventually(t, "the streams to end", func() bool { return w.srv.streams.Load() == 0 })
	}, quick)
}

func TestStream_LongJournal(t *testing.T) {
	// proves RDR-2 RDR-3
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		r := w.run(t, w.alice)
		for range 25 {
			bodies := make([]journal.Body, 40)
			for i := range bodies {
				bodies[i] = &journal.PlanUpdated{Plan: []journal.PlanItem{}}
			}
			storetest.MustAppend(t, w.store, r.Claim, "", bodies...)
		}
		st := w.open(t, r.Session, "", as(w.alice))
		for seq := 1; seq <= 1000; seq++ { // ten pages of the stream
			if m := st.event(); m.id != strconv.Itoa(seq) {
				t.Fatalf("got #%s, want #%d", m.id, seq)
			}
		}
	})
}

func TestStream_Begins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.serve(t)
	r := w.open(t, w.session(t, w.alice), "", as(w.alice))
	if line, err := r.in.ReadString('\n'); err != nil || line != "retry: 1000\n" {
		t.Errorf("the stream begins with %q, %v", line, err)
	}
}

func TestStream_Heartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"), quick)
	w.serve(t)
	id := w.session(t, w.alice)
	r := w.open(t, id, "", as(w.alice))
	r.event()
	m := r.until("hb")
	var data struct {
		Head int64  `json:"head"`
		Now  string `json:"now"`
	}
	if err := json.Unmarshal([]byte(m.data), &data); err != nil || m.id != "" || data.Head != 1 || !rfc3339.MatchString(data.Now) {
		t.Errorf("got the heartbeat %+v, %v", m, err)
	}
	storetest.MustPrompt(t, w.store, w.alice.user.ID, id, "x", journal.Queue)
	r.until("prompt.admitted")
	if m := r.until("hb"); !strings.Contains(m.data, `"head":2`) {
		t.Errorf("got the heartbeat %+v after two events", m)
	}
}

func TestStream_Gone(t *testing.T) {
	// proves RDR-7
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		id := w.session(t, w.alice)
		other := w.newCookie(t, w.alice.user.ID)
		byToken, another := w.open(t, id, "", as(w.alice)), w.open(t, id, "", as(w.alice))
		byCookie := w.open(t, id, "", browser(w.alice))
		stays := w.open(t, id, "", browser(person{cookie: other}))
		for _, r := range []*reader{byToken, another, byCookie, stays} {
			r.until("hb")
		}
		if err := w.store.RevokeToken(t.Context(), w.alice.tokenI); err != nil {
			t.Fatal(err)
		}
		if m := byToken.until("gone"); m.data != "revoked" || m.id != "" {
			t.Errorf("got %+v, want revoked", m)
		}
		byToken.ended()
		another.until("gone")
		ctx, err := w.srv.sessions.Load(t.Context(), w.alice.cookie)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.srv.sessions.Destroy(ctx); err != nil {
			t.Fatal(err)
		}
		if m := byCookie.until("gone"); m.data != "signed_out" {
			t.Errorf("got %+v, want signed_out", m)
		}
		byCookie.ended()
		stays.until("hb") // another browser of the same person
		if err := w.store.DisableUser(t.Context(), w.alice.user.Email); err != nil {
			t.Fatal(err)
		}
		stays.until("gone")
		// RDR-7 gives 10 s: the default must look often enough.
		if every := New(Options{Store: w.store}).opts.Heartbeat / 2; every > 5*time.Second {
			t.Errorf("streams look for their authorization every %s", every)
		}
	}, quick)
}

func TestStream_EndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"), func(o *Options) { o.StreamMax = 100 * time.Millisecond })
	w.serve(t)
	r := w.open(t, w.session(t, w.alice), "", as(w.alice))
	r.event()
	r.ended()
}

func TestStream_ReaderLeaves(t *testing.T) {
	// proves RDR-5
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"), quick)
	w.serve(t)
	run := w.start(t, w.alice, "go")
	before := storetest.Events(t, w.store, run.Session)
	r := w.open(t, run.Session, "", as(w.alice))
	r.event()
	if n := w.srv.streams.Load(); n != 1 {
		t.Fatalf("got %d streams, want 1", n)
	}
	r.close()
	eventually(t, "the stream to end", func() bool { return w.srv.streams.Load() == 0 })
	after := storetest.Events(t, w.store, run.Session)
	if st := storetest.MustState(t, w.store, run.Session); len(after) != len(before) || !st.TurnOpen() {
		t.Errorf("losing the stream has changed the session: %v", storetest.Kinds(after[len(before):]))
	}
}

// TestCtxInStream would see a stream that still uses its request: fiber gives the
// context to the next request when the handler returns.
func TestCtxInStream(t *testing.T) {
	// proves OWN-1
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"), quick)
	w.serve(t)
	people := []person{w.alice, w.mallory}
	var ids []string
	var readers []*reader
	for i := range 8 {
		p := people[i%2]
		id := w.session(t, p)
		ids = append(ids, id)
		r := w.open(t, id, "", as(p))
		r.event()
		readers = append(readers, r)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 40 {
				n := (i + j) % 8
				w.get(t, "/api/v1/sessions/"+ids[n]+"/events?after=1", as(people[n%2]))
				w.get(t, "/api/v1/sessions/"+ids[n]+"/calls", as(people[(n+1)%2]))
			}
		})
	}
	wg.Wait()
	for i, id := range ids {
		storetest.MustPrompt(t, w.store, people[i%2].user.ID, id, "for "+id, journal.Queue)
	}
	for i, r := range readers {
		m := r.event()
		if m.id != "2" || !strings.Contains(m.data, `"session_id":"`+ids[i]+`"`) || !strings.Contains(m.data, "for "+ids[i]) {
			t.Errorf("the stream of %s got %+v", ids[i], m)
		}
	}
}

// get asks over a real connection.
func (w *world) get(t *testing.T, path string, opts ...option) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+path, http.NoBody)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	for _, o := range opts {
		o(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	b, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Error(err, cerr)
	}
	return answer{res.StatusCode, res.Header, b}
}

func TestKeptStrings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	kept := make(chan []string, 2)
	w.srv.app.Get("/test/:name", func(c *fiber.Ctx) error {
		kept <- []string{c.Params("name"), c.Query("q"), c.Get("X-Word"), c.Cookies("k")}
		return nil
	})
	w.serve(t)
	for _, word := range []string{"alice", "MALLO"} { // on one connection
		w.get(t, "/test/"+word+"?q="+word, header("X-Word", word), header("Cookie", "k="+word)).want(t, http.StatusOK)
	}
	if got := <-kept; !slices.Equal(got, []string{"alice", "alice", "alice", "alice"}) {
		t.Errorf("what the first request said became %q", got)
	}
}

func TestStream_TextForgesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\nid: 999\n\nevent: evil\ndata: x", "a\r\n\r\nevent: evil\r\n", "a\rid: 7\r\revent: evil", "\n\n\n", "retry: 1\n", "plain"} {
		var b bytes.Buffer
		b.Write(framed(3, "row\nevent: evil", text))
		b.WriteString("event: hb\ndata: {}\n\n")
		r := &reader{t: t, in: bufio.NewReader(&b)}
		m := r.mustNext()
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		if m.id != "3" || m.event != "row event: evil" || m.data != want {
			t.Errorf("%q: got %+v", text, m)
		}
		if m := r.mustNext(); m.event != "hb" || m.id != "" {
			t.Errorf("%q: got %+v, want the message after it", text, m)
		}
	}
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.serve(t)
	id := w.session(t, w.alice)
	text := "x\n\nid: 999\nevent: gone\ndata: revoked\n\n"
	storetest.MustPrompt(t, w.store, w.alice.user.ID, id, text, journal.Queue)
	r := w.open(t, id, "?after=1", as(w.alice))
	m := r.event()
	var ev struct {
		Data struct {
			Text string `json:"text"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(m.data), &ev); err != nil || m.id != "2" || m.event != "prompt.admitted" || ev.Data.Text != text {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestStream_Panic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	st := &stream{s: w.srv, ctx: t.Context(), who: identity{User: w.alice.user}, session: w.session(t, w.alice), conn: discardConn{}}
	st.feed = panics{}
	st.run(bufio.NewWriter(io.Discard)) // would end the process
	if !strings.Contains(w.log.String(), "stream panicked") || w.srv.streams.Load() != 0 || len(w.srv.open) != 0 {
		t.Errorf("got %d streams and the log %s", w.srv.streams.Load(), w.log)
	}
}

type panics struct{ eventFeed }

func (panics) read(context.Context, *store.Follower, int64) ([]streamMessage, int64, error) {
	panic("in the midst of it")
}

type discardConn struct{ net.Conn }

func (discardConn) SetWriteDeadline(time.Time) error { return nil }

// stuck opens a stream and never reads it.
func (w *world) stuck(t *testing.T, session string) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /api/v1/sessions/%s/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n\r\n", session, w.alice.token); err != nil {
		t.Fatal(err)
	}
	return conn
}

// long makes a session with a journal of about 6 MB.
func (w *world) long(t *testing.T) string {
	t.Helper()
	r := w.run(t, w.alice)
	text := journal.T(strings.Repeat("x", 30_000))
	for range 20 {
		bodies := make([]journal.Body, 10)
		for i := range bodies {
			bodies[i] = &journal.MessageCompleted{MessageID: store.NewID("msg"), Role: "agent", Part: journal.PartText, Text: text}
		}
		storetest.MustAppend(t, w.store, r.Claim, "", bodies...)
	}
	return r.Session
}

func TestStream_SlowReader(t *testing.T) {
	// proves RDR-3
	onEach(t, func(t *testing.T, w *world) {
		w.srv.flushTime = 3 * time.Second
		w.serve(t)
		id := w.long(t)
		const readers = 20
		for range readers {
			w.stuck(t, id)
		}
		eventually(t, "the streams to begin", func() bool { return w.srv.streams.Load() == readers })
		// The run is not slowed: the session takes what comes, while they hold nothing up.
		storetest.MustPrompt(t, w.store, w.alice.user.ID, id, "x", journal.Queue)
		eventually(t, "the streams to be dropped", func() bool { return w.srv.streams.Load() == 0 })
		// Each read the page that it could not get rid of, and none of the four others.
		if n := w.srv.pages.Load(); n > readers {
			t.Errorf("%d stuck readers had %d pages read", readers, n)
		}
		eventually(t, "the connections to be closed", func() bool { return w.srv.App().Server().GetCurrentConcurrency() == 0 })
	})
}

func TestShutdown(t *testing.T) {
	// proves COO-6
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		id := w.session(t, w.alice)
		long := w.long(t)
		var readers []*reader
		for range 5 {
			r := w.open(t, id, "", as(w.alice))
			r.event()
			readers = append(readers, r)
		}
		w.stuck(t, long)
		polled := make(chan answer, 1)
		go func() { polled <- w.get(t, "/api/v1/sessions/"+id+"/events?after=1&wait=60s", as(w.alice)) }()
		eventually(t, "all to be open", func() bool { return w.srv.streams.Load() == 6 && w.srv.polls.Load() == 1 })
		began := time.Now()
		if err := w.srv.Shutdown(t.Context()); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s, want less than 5 s: nobody waits for a heartbeat", took)
		}
		for _, r := range readers {
			if m := r.until("bye"); m.data != `{"reason":"server_stopping"}` || m.id != "" {
				t.Errorf("got %+v", m)
			}
			r.ended()
		}
		if a := <-polled; a.status != http.StatusOK || !strings.Contains(string(a.body), `"events":[]`) {
			t.Errorf("the long poll got %d %s", a.status, a.body)
		}
		if n := w.srv.streams.Load(); n != 0 {
			t.Errorf("%d streams are open", n)
		}
	})
}

func TestShutdown_BeforeServe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	if err := w.srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.serve(t) // its cleanup waits for Serve to return
}

func TestEvents_JSON(t *testing.T) {
	// proves RDR-2
	onEach(t, func(t *testing.T, w *world) {
		id := w.session(t, w.alice)
		for i := range 7 {
			storetest.MustPrompt(t, w.store, w.alice.user.ID, id, fmt.Sprint("<", i, ">"), journal.Queue)
		}
		var got []string
		after, more := 0.0, true
		for more {
			p := w.do(t, get, fmt.Sprintf("/api/v1/sessions/%s/events?after=%v&limit=3", id, after), as(w.alice)).want(t, http.StatusOK)
			wantMembers(t, "page", any(p), "events last_seq has_more")
			for _, e := range p["events"].([]any) {
				o := wantMembers(t, "event", e, eventMembers)
				wantTimes(t, o, "time")
				wantMembers(t, "actor", o["actor"], "type id")
				if o["execution_id"] != nil {
					t.Errorf("got the execution %v of a person's event", o["execution_id"])
				}
				got = append(got, fmt.Sprint(o["seq"], o["kind"]))
			}
			after, more = p["last_seq"].(float64), p["has_more"].(bool)
		}
		want := []string{"1session.created"}
		for i := 2; i <= 8; i++ {
			want = append(want, fmt.Sprint(i, "prompt.admitted"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		a := w.do(t, get, "/api/v1/sessions/"+id+"/events?after=8", as(w.alice))
		if !strings.Contains(string(a.body), `{"events":[],"last_seq":8,"has_more":false}`) {
			t.Errorf("at the head: got %s", a.body)
		}
		if a := w.do(t, get, "/api/v1/sessions/"+id+"/events?limit=100000", as(w.alice)); !strings.Contains(string(a.body), `"text":"<6>"`) {
			t.Errorf("the data isn't as it was written: %s", a.body)
		}
	})
}

func TestEvents_BoundedAnswer(t *testing.T) {
	t.Parallel()
	p := store.Page{Head: 300}
	for i := range 300 {
		p.Events = append(p.Events, journal.Event{Seq: int64(i + 1), Data: json.RawMessage(`"` + strings.Repeat("x", journal.MaxEventBody) + `"`)})
	}
	out, err := newEventsJSON(p, 0, journal.NewCleaner(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Events) != answerBytes/(journal.MaxEventBody+2) || !out.HasMore || out.LastSeq != int64(len(out.Events)) {
		t.Errorf("got %d events up to %d, more: %v", len(out.Events), out.LastSeq, out.HasMore)
	}
}

func TestEvents_LongPoll(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.serve(t)
		id := w.session(t, w.alice)
		path := "/api/v1/sessions/" + id + "/events?after=1"
		began := time.Now()
		if a := w.get(t, path+"&wait=100ms", as(w.alice)); !strings.Contains(string(a.body), `"events":[],"last_seq":1`) || time.Since(began) < 100*time.Millisecond {
			t.Errorf("nothing came: got %s after %s", a.body, time.Since(began))
		}
		if a := w.get(t, "/api/v1/sessions/"+id+"/events?wait=1m", as(w.alice)); !strings.Contains(string(a.body), `"last_seq":1`) {
			t.Errorf("what is there already: got %s", a.body)
		}
		wait := func() (<-chan answer, func()) {
			polled := make(chan answer, 1)
			go func() { polled <- w.get(t, path+"&wait=1m", as(w.alice)) }()
			return polled, func() {
				eventually(t, "the poll to wait", func() bool { return w.srv.polls.Load() == 1 })
			}
		}
		polled, waits := wait()
		waits()
		storetest.MustPrompt(t, w.store, w.alice.user.ID, id, "x", journal.Queue)
		if a := <-polled; a.status != http.StatusOK || !strings.Contains(string(a.body), `"kind":"prompt.admitted"`) {
			t.Errorf("got %d %s", a.status, a.body)
		}
		path = "/api/v1/sessions/" + id + "/events?after=2"
		polled, waits = wait()
		waits()
		if err := w.store.RevokeToken(t.Context(), w.alice.tokenI); err != nil {
			t.Fatal(err)
		}
		storetest.MustPrompt(t, w.store, w.alice.user.ID, id, "not for this token", journal.Queue)
		(<-polled).wantProblem(t, http.StatusUnauthorized, "revoked")
		if n := w.srv.polls.Load(); n != 0 {
			t.Errorf("%d polls wait after all were answered", n)
		}
	})
}

func TestLimitsOfARequest(t *testing.T) {
	// proves ADM-10
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.serve(t)
	path := "/api/v1/sessions/" + w.session(t, w.alice) + "/prompts"
	raw := w.db.SQL(t)
	before := w.db.RowCounts(t, raw)
	send := func(body io.Reader) answer {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+path, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []option{as(w.alice), key("k"), header("Content-Type", "application/json")} {
			o(req)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return readAnswer(t, res)
	}
	big := `{"text":"` + strings.Repeat("x", 8*bodyLimit) + `"}` // more than the kernel keeps
	send(strings.NewReader(big)).wantProblem(t, http.StatusRequestEntityTooLarge, "body-too-large")
	a := send(struct{ io.Reader }{strings.NewReader(big)}) // chunked
	a.wantProblem(t, http.StatusRequestEntityTooLarge, "body-too-large")
	if a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got the headers %v", a.header)
	}
	if after := w.db.RowCounts(t, raw); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("rows were written: %v, then %v", before, after)
	}
	cookies := func(n int) answer {
		return w.get(t, "/api/v1/sessions", as(w.alice), header("Cookie", "theme="+strings.Repeat("x", n)))
	}
	cookies(5000).want(t, http.StatusOK)
	cookies(20_000).wantProblem(t, http.StatusRequestHeaderFieldsTooLarge, "headers-too-large")
}
