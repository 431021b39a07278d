package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/vault"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),    // one for the process
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"), // sees its end when it wakes, each 10 s
		goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"),                   // of storetest's pool of databases
	)
}

// patience is how long a test waits for what must happen at once.
const patience = 2 * time.Minute

// world is a server on a database of its own, with two people.
type world struct {
	db      *storetest.DB
	store   *store.Store
	srv     *Server
	log     *logBuffer
	alice   person
	mallory person
	base    string // of the real listener, once serve was called
}

type person struct {
	user   store.User
	token  string
	tokenI string // its id
	cookie string
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// onEach runs body on each database.
func onEach(t *testing.T, body func(t *testing.T, w *world), with ...func(*Options)) {
	t.Helper()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) { body(t, newWorld(t, db, with...)) })
}

func newWorld(t *testing.T, db *storetest.DB, with ...func(*Options)) *world {
	t.Helper()
	w := &world{db: db, store: db.Open(t), log: &logBuffer{}}
	o := Options{
		Store: w.store, Logger: slog.New(slog.NewJSONHandler(w.log, nil)),
		Prepare: func(_ context.Context, path string) (string, string, error) {
			if !strings.HasPrefix(path, "/srv/") {
				return "", "", journal.Errorf(journal.Unprocessable, "%s is under none of the workspaces.", path).Typed("workspace-outside")
			}
			return path, "wsp_1", nil
		},
	}
	for _, f := range with {
		f(&o)
	}
	if o.Vault == nil {
		o.Vault = w.vault(t, o.Store)
	}
	w.srv = New(o)
	w.alice, w.mallory = w.person(t), w.person(t)
	return w
}

// vault keeps the credentials of a store, with a key of its own.
func (w *world) vault(t *testing.T, s *store.Store) *vault.Keeper {
	t.Helper()
	k, err := vault.Open(t.Context(), s, vault.Source{File: filepath.Join(t.TempDir(), "key")})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (w *world) person(t *testing.T) person {
	t.Helper()
	p := person{user: storetest.MustUser(t, w.store)}
	p.token, p.tokenI = w.newToken(t, p.user.ID, store.ScopeAll)
	p.cookie = w.newCookie(t, p.user.ID)
	return p
}

func (w *world) newCookie(t *testing.T, userID string) string {
	t.Helper()
	ctx, err := w.srv.sessions.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	w.srv.sessions.Put(ctx, sessUser, userID)
	cookie, _, err := w.srv.sessions.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

func (w *world) newToken(t *testing.T, userID string, scope store.Scope) (secret, id string) {
	t.Helper()
	tk, secret, err := w.store.AddToken(t.Context(), userID, "test", scope, 0)
	if err != nil {
		t.Fatal(err)
	}
	return secret, tk.ID
}

// option changes a request.
type option func(*http.Request)

func as(p person) option { return bearer(p.token) }

func bearer(token string) option {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func browser(p person) option {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: p.cookie}) }
}

func key(k string) option { return header("Idempotency-Key", k) }

func header(name, value string) option {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// also sends a header once more.
func also(name, value string) option {
	return func(r *http.Request) { r.Header.Add(name, value) }
}

// sending gives the request a body of a type.
func sending(contentType, body string) option {
	return func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
	}
}

func sendsJSON(body string) option { return sending("application/json", body) }

func sendsForm(body string) option { return sending("application/x-www-form-urlencoded", body) }

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends one request through the router, without a connection.
func (w *world) do(t *testing.T, method, path string, opts ...option) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://holdfast.test/", http.NoBody)
	r.URL.Opaque = path // as it is, encoded or not
	r.RequestURI = path
	for _, o := range opts {
		o(r)
	}
	res, err := w.srv.App().Test(r, int(patience.Milliseconds()))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return readAnswer(t, res)
}

func readAnswer(t *testing.T, res *http.Response) answer {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if cerr := res.Body.Close(); err != nil || cerr != nil {
		t.Fatalf("read the answer: %v, %v", err, cerr)
	}
	return answer{res.StatusCode, res.Header, b}
}

// want fails unless the answer has the status, and decodes it.
func (a answer) want(t *testing.T, status int) map[string]any {
	t.Helper()
	if a.status != status {
		t.Fatalf("got %d %s\nwant %d", a.status, a.body, status)
	}
	var out map[string]any
	if len(a.body) > 0 && strings.Contains(a.header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(a.body, &out); err != nil {
			t.Fatalf("the answer isn't JSON: %v\n%s", err, a.body)
		}
	}
	return out
}

// wantProblem fails unless the answer is a whole problem document with the status and the slug.
func (a answer) wantProblem(t *testing.T, status int, slug string) map[string]any {
	t.Helper()
	out := a.want(t, status)
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("got the type %q of %s, want application/problem+json", got, a.body)
	}
	if out["type"] != slug || out["status"] != float64(status) || out["title"] == "" || out["detail"] == "" || out["request_id"] != a.header.Get("X-Request-ID") {
		t.Fatalf("got the problem %s, want %q with status, title, detail and request_id", a.body, slug)
	}
	return out
}

func (w *world) session(t *testing.T, p person) string {
	t.Helper()
	return storetest.MustSession(t, w.store, p.user.ID).ID
}

// run is a session of the person's with an open turn and a claim.
func (w *world) run(t *testing.T, p person) *storetest.Run {
	t.Helper()
	r := &storetest.Run{Owner: p.user.ID, Session: w.session(t, p), Worker: "w1"}
	r.Prompt = storetest.MustPrompt(t, w.store, r.Owner, r.Session, "do it", journal.Queue)
	r.Claim = storetest.MustClaim(t, w.store, r.Session, r.Worker)
	r.Turn = storetest.MustPromote(t, w.store, r.Claim)
	return r
}

// serve answers on a real listener until the test ends.
func (w *world) serve(t *testing.T) {
	t.Helper()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.base = "http://" + ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- w.srv.Serve(smallBuffers{ln}) }()
	t.Cleanup(func() {
		if err := w.srv.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("shut down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// smallBuffers gives connections for which the kernel keeps little, so that a
// reader who takes nothing is noticed.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return tcp, errors.Join(err, tcp.SetWriteBuffer(64<<10))
	}
	return c, err
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !ok() {
		select {
		case <-end.C:
			t.Fatalf("waited %s in vain: %s", patience, what)
		case <-tick.C:
		}
	}
}
