package browser

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy stands between Chromium and a server, and fails on demand. It also notes
// each event stream that goes through it.
type proxy struct {
	t    *testing.T
	base string // its address for a browser

	mu       sync.Mutex
	more     chan struct{} // closed and replaced at each change
	mode     mode
	losing   string // the answers to posts whose path ends so are lost
	conns    map[*cuttable]bool
	streams  []*stream
	open     int
	mostOpen int
}

type mode int

const (
	passing mode = iota
	refusing
	frozen
	unavailable
)

// stream is one event stream as it went over the wire.
type stream struct {
	path  string
	after int64   // the cursor that was asked for
	ids   []int64 // of its events, as they came
	hb    int     // heartbeats
	ended bool
}

// proxy starts one in front of a server. It lives as long as the test.
func (s *server) proxy() *proxy {
	s.w.t.Helper()
	p := &proxy{t: s.w.t, more: make(chan struct{}), conns: map[*cuttable]bool{}}
	var lc net.ListenConfig
	ln, err := lc.Listen(context.WithoutCancel(p.t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.base = "http://" + ln.Addr().String()
	target, err := url.Parse(s.base)
	if err != nil {
		p.t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // the server compares it with the Origin
		},
		FlushInterval:  -1,
		ModifyResponse: p.note,
		// A connection that is kept could die with the server, and a request on it would fail for that.
		Transport:    &http.Transport{DisableKeepAlives: true},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	web := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if p.is(unavailable) {
			rw.Header().Set("Retry-After", "1")
			http.Error(rw, "the proxy has no server", http.StatusServiceUnavailable)
			return
		}
		forward.ServeHTTP(rw, r)
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(&door{Listener: ln, p: p}) // it ends with Close
	}()
	p.t.Cleanup(func() {
		p.become(passing)
		_ = web.Close()
		p.eachConn(func(c *cuttable) { c.cut() })
		<-done
	})
	return p
}

func (p *proxy) is(m mode) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode == m
}

func (p *proxy) become(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mode = m
	p.tell()
}

// tell wakes who waits for a change; the caller holds the lock.
func (p *proxy) tell() {
	close(p.more)
	p.more = make(chan struct{})
}

func (p *proxy) eachConn(f func(c *cuttable)) {
	p.mu.Lock()
	var all []*cuttable
	for c := range p.conns {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// pass lets everything through again. What was frozen stays dead.
func (p *proxy) pass() {
	p.lose("")
	p.become(passing)
}

// drop resets all connections and refuses new ones.
func (p *proxy) drop() {
	p.become(refusing)
	p.eachConn(func(c *cuttable) { c.cut() })
}

// freeze lets packets vanish: sockets stay open and nothing comes through them any
// more, also after pass; new connections wait for pass.
func (p *proxy) freeze() {
	p.become(frozen)
	p.eachConn(func(c *cuttable) { c.freeze() })
}

// answer503 answers 503 to everything, and ends the streams that are open.
func (p *proxy) answer503() {
	p.become(unavailable)
	p.eachConn(func(c *cuttable) { c.cut() })
}

// lose lets the answers to posts vanish whose path ends so: what they asked for is
// done. It lasts until pass, since a browser sends some requests again by itself.
func (p *proxy) lose(suffix string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.losing = suffix
}

func (p *proxy) loses(r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losing != "" && r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, p.losing)
}

// door takes connections as the mode allows.
type door struct {
	net.Listener
	p *proxy
}

// Accept waits for a connection that the mode lets in.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if d.p.is(refusing) {
			reset(c)
			continue
		}
		d.p.whileFrozen()
		cut := &cuttable{Conn: c, p: d.p, dead: make(chan struct{}), gone: make(chan struct{})}
		d.p.mu.Lock()
		d.p.conns[cut] = true
		d.p.mu.Unlock()
		return cut, nil
	}
}

// whileFrozen waits until the proxy is frozen no more.
func (p *proxy) whileFrozen() {
	for {
		p.mu.Lock()
		more, is := p.more, p.mode == frozen
		p.mu.Unlock()
		if !is {
			return
		}
		<-more
	}
}

// reset ends a connection at once, as a host does that has no such port.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// cuttable is a connection of the browser.
type cuttable struct {
	net.Conn
	p              *proxy
	mu             sync.Mutex
	isDead, isGone bool
	dead, gone     chan struct{}
}

func (c *cuttable) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isDead {
		c.isDead = true
		close(c.dead)
	}
}

func (c *cuttable) cut() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Close closes the connection, also a frozen one.
func (c *cuttable) Close() error {
	c.mu.Lock()
	if !c.isGone {
		c.isGone = true
		close(c.gone)
	}
	c.mu.Unlock()
	c.p.mu.Lock()
	delete(c.p.conns, c)
	c.p.mu.Unlock()
	return c.Conn.Close()
}

// Read gives what the browser sent, and nothing for ever once frozen.
func (c *cuttable) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.blackhole() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write sends to the browser, and hangs for ever once frozen.
func (c *cuttable) Write(b []byte) (int, error) {
	if c.blackhole() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// blackhole returns false at once from a live connection, and true from a frozen
// one when it is closed.
func (c *cuttable) blackhole() bool {
	select {
	case <-c.dead:
		<-c.gone
		return true
	default:
		return false
	}
}

// note notes a stream; an answer that is to be lost it refuses to pass on.
func (p *proxy) note(res *http.Response) error {
	if p.loses(res.Request) {
		return errors.New("the answer is lost")
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	after, _ := strconv.ParseInt(res.Request.URL.Query().Get("after"), 10, 64)
	if last, err := strconv.ParseInt(res.Request.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = max(after, last)
	}
	s := &stream{path: res.Request.URL.Path, after: after}
	p.mu.Lock()
	p.streams = append(p.streams, s)
	p.open++
	p.mostOpen = max(p.mostOpen, p.open)
	p.tell()
	p.mu.Unlock()
	r, w := io.Pipe()
	go p.read(s, r)
	res.Body = &tee{ReadCloser: res.Body, w: w}
	return nil
}

// tee hands a copy of a stream to its reader.
type tee struct {
	io.ReadCloser
	w *io.PipeWriter
}

// Read reads on, and passes the copy on.
func (b *tee) Read(buf []byte) (int, error) {
	n, err := b.ReadCloser.Read(buf)
	if n > 0 {
		_, _ = b.w.Write(buf[:n]) // its reader reads to the end
	}
	if err != nil {
		_ = b.w.Close()
	}
	return n, err
}

// Close ends both.
func (b *tee) Close() error {
	_ = b.w.Close()
	return b.ReadCloser.Close()
}

// read notes the ids of a stream until it ends.
func (p *proxy) read(s *stream, r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		p.mu.Lock()
		switch {
		case name == "id":
			id, idErr := strconv.ParseInt(value, 10, 64)
			if idErr != nil {
				id = -1
			}
			s.ids = append(s.ids, id)
			p.tell()
		case name == "event" && value == "hb":
			s.hb++
			p.tell()
		}
		if err != nil {
			s.ended = true
			p.open--
			p.tell()
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits until something holds of the streams.
func (p *proxy) until(what string, ok func(streams []*stream) bool) {
	p.t.Helper()
	late := time.After(patience)
	for {
		p.mu.Lock()
		is, more := ok(p.streams), p.more
		p.mu.Unlock()
		if is {
			return
		}
		select {
		case <-more:
		case <-late:
			p.t.Fatalf("the proxy waited in vain until %s", what)
		}
	}
}

// wantContiguous fails unless the ids of each stream follow its cursor without a
// gap and without a repeat: the page must not hide a server that repeats itself.
func (p *proxy) wantContiguous() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.streams {
		next := s.after + 1
		for _, id := range s.ids {
			if id != next {
				p.t.Errorf("stream %d of %s (after %d): entry %d where %d was due, in %v", i, s.path, s.after, id, next, s.ids)
				break
			}
			next++
		}
	}
}

// The proxy itself: a test of a fault that never happened proves nothing.
func TestProxy_Fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	s := w.serve()
	a := s.api()
	p := s.proxy()
	gate := w.gate("gate")
	id := a.mission(steps(gate.Read()+"; echo one", gate.Read()+"; echo two"))
	// ask gives the status and the body, which ends with the test.
	ask := func(path string, within time.Duration) (int, io.Reader, error) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		req.Header.Set("Authorization", "Bearer "+w.token)
		req.Header.Set("Accept", "text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, nil, err
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode, res.Body, nil
	}
	well := func(when, path string) io.Reader {
		t.Helper()
		status, body, err := ask(path, patience)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %v", when, status, err)
		}
		return body
	}

	first := well("at first", "/api/v1/sessions/"+id+"/events?after=0")
	p.until("the first entries come", func(all []*stream) bool { return len(all) == 1 && len(all[0].ids) > 2 })
	p.freeze()
	gate.Open()
	a.send(http.MethodGet, "/api/v1/sessions/"+id, nil, nil) // the server itself is well
	if _, _, err := ask("/healthz", 200*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is frozen a request gets %v", err)
	}
	p.pass()
	gate.Open()
	a.untilQuiet(id, "ready")
	last := a.session(id).LastSeq
	well("after it was frozen", "/healthz")
	p.drop()
	if _, err := io.ReadAll(first); err == nil {
		t.Error("a stream that was cut ends well")
	}
	if _, _, err := ask("/healthz", patience); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it drops connections a request gets %v", err)
	}
	p.answer503()
	if status, _, err := ask("/healthz", patience); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("503 to everything: %d %v", status, err)
	}
	p.pass()
	well("at last", "/api/v1/sessions/"+id+"/events?after=2")
	p.until("all entries come", func(all []*stream) bool {
		ids := all[len(all)-1].ids
		return len(all) == 2 && len(ids) > 0 && ids[0] == 3 && ids[len(ids)-1] == last
	})
	p.wantContiguous()
	if p.mostOpen < 1 || p.mostOpen > 2 {
		t.Errorf("%d streams at once", p.mostOpen)
	}
}
