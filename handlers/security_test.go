package handlers

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/alexedwards/argon2id"
	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store/storetest"
)

// A request that says twice where it ends is refused, and what follows it on the
// connection is nobody's request.
func TestFraming(t *testing.T) {
	// proves OWN-2
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.serve(t)
	session := w.session(t, w.alice)
	raw := w.db.SQL(t)
	const chunked, length = "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n"
	for i, tt := range []struct {
		headers string
		status  int
	}{
		{chunked, http.StatusAccepted},
		{length + chunked, http.StatusBadRequest},
		{chunked + length, http.StatusBadRequest},
		{"content-length: 0\r\nX-Other: y\r\ntransfer-encoding: Chunked\r\n", http.StatusBadRequest},
		{length + "Transfer-Encoding: identity\r\n", http.StatusBadRequest},
		{length + length, http.StatusBadRequest},
		{chunked + chunked, http.StatusBadRequest},
		{"Transfer-Encoding: gzip, chunked\r\n", http.StatusBadRequest},
		{"Transfer-Encoding : chunked\r\n" + length, http.StatusBadRequest},
	} {
		before := w.db.RowCounts(t, raw)
		const body = `{"text":"x"}`
		request := fmt.Sprintf("POST /api/v1/sessions/%s/prompts HTTP/1.1\r\nHost: holdfast.test\r\nAuthorization: Bearer %s\r\nIdempotency-Key: k%d\r\nContent-Type: application/json\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
			session, w.alice.token, i, tt.headers, len(body), body)
		statuses := w.raw(t, request+"GET /healthz HTTP/1.1\r\nHost: holdfast.test\r\nConnection: close\r\n\r\n")
		want := []int{tt.status}
		if tt.status == http.StatusAccepted {
			want = append(want, http.StatusOK)
		}
		if !slices.Equal(statuses, want) {
			t.Errorf("%q: got %v, want %v and the end", tt.headers, statuses, want)
		}
		if after := w.db.RowCounts(t, raw); maps.Equal(before, after) != (tt.status == http.StatusBadRequest) {
			t.Errorf("%q: rows before %v, after %v", tt.headers, before, after)
		}
	}
}

// raw sends bytes on a connection of its own and gives the statuses of all that
// is answered until the server closes it.
func (w *world) raw(t *testing.T, request string) (statuses []int) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(w.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for {
		res, err := http.ReadResponse(r, nil)
		if err != nil { // it is closed
			return statuses
		}
		statuses = append(statuses, readAnswer(t, res).status)
	}
}

func TestCrossSite(t *testing.T) {
	// proves OWN-2
	t.Parallel()
	db := storetest.New(t, "sqlite")
	for _, tt := range []struct {
		name, public string
		method       string
		site, origin string
		refused      bool
	}{
		{name: "a program", method: post},
		{name: "same origin", method: post, site: "same-origin"},
		{name: "typed by a person", method: post, site: "none"},
		{name: "cross-site", method: post, site: "cross-site", refused: true},
		{name: "same site", method: post, site: "same-site", refused: true},
		{name: "cross-site although its Origin is ours", method: post, site: "cross-site", origin: "http://holdfast.test", refused: true},
		{name: "our Origin", method: post, origin: "http://holdfast.test"},
		{name: "another Origin", method: post, origin: "http://evil.test", refused: true},
		{name: "null", method: post, origin: "null", refused: true},
		{name: "another port", method: post, origin: "http://holdfast.test:81", refused: true},
		{name: "to delete", method: del, site: "cross-site", refused: true},
		{name: "to read", method: get, site: "cross-site"},
		{name: "behind a proxy", public: "https://agents.example/", method: post, origin: "https://agents.example"},
		{name: "behind a proxy, the port written out", public: "https://agents.example:443", method: post, origin: "https://agents.example"},
		{name: "behind a proxy at another port", public: "https://agents.example:8443", method: post, origin: "https://agents.example", refused: true},
		{name: "behind a proxy by its inner name", public: "https://agents.example", method: post, origin: "http://holdfast.test", refused: true},
		{name: "behind a proxy by another scheme", public: "https://agents.example", method: post, origin: "http://agents.example", refused: true},
	} {
		w := newWorld(t, db, func(o *Options) { o.PublicURL = tt.public })
		opts := []option{as(w.alice)}
		if tt.site != "" {
			opts = append(opts, header("Sec-Fetch-Site", tt.site))
		}
		if tt.origin != "" {
			opts = append(opts, header("Origin", tt.origin))
		}
		a := w.do(t, tt.method, "/api/v1/sessions/ses_0", opts...)
		if refused := a.status == http.StatusForbidden; refused != tt.refused {
			t.Errorf("%s: got %d, refused should be %v", tt.name, a.status, tt.refused)
		} else if refused {
			a.wantProblem(t, http.StatusForbidden, "cross-site")
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	ids := map[string]bool{}
	for _, path := range []string{"/healthz", "/api/v1/sessions", "/api/v1/nothing", "/nothing", "/"} {
		a := w.do(t, get, path, header("X-Request-ID", "mine\r\nSet-Cookie: x=1"))
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: got %s: %q, want %q", path, name, got, want)
			}
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if got := a.header.Get("Content-Security-Policy"); !strings.Contains(got, part+";") && !strings.HasSuffix(got, part) {
				t.Errorf("%s: the policy %q lacks %s", path, got, part)
			}
		}
		if a.header.Get("Permissions-Policy") == "" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: got the headers %v", path, a.header)
		}
		id := a.header.Get("X-Request-ID")
		if len(id) < 20 || strings.Contains(id, "mine") || ids[id] {
			t.Errorf("%s: got the request id %q", path, id)
		}
		ids[id] = true
	}
}

func TestFaultsStayInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.srv.app.Get("/api/fault", func(c *fiber.Ctx) error {
		if err := c.SendString("half an answer"); err != nil {
			return err
		}
		return errors.New("a secret of the inside")
	})
	w.srv.app.Get("/api/panic", func(*fiber.Ctx) error { panic("a secret of the inside") })
	w.srv.app.Get("/fault", func(c *fiber.Ctx) error {
		_, err := c.WriteString("half a page")
		return errors.Join(err, errors.New("a secret of the inside"))
	})
	for _, path := range []string{"/api/fault", "/api/panic"} {
		a := w.do(t, get, path)
		p := a.wantProblem(t, http.StatusInternalServerError, "internal")
		if strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), "half") {
			t.Errorf("%s: got %s", path, a.body)
		}
		lines := 0
		for line := range strings.Lines(w.log.String()) {
			if !strings.Contains(line, p["request_id"].(string)) {
				continue
			}
			lines++
			if !strings.Contains(line, "request failed") || !strings.Contains(line, "secret of the inside") || strings.Contains(line, "security_test.go") != (path == "/api/panic") {
				t.Errorf("%s: logged as %s", path, line)
			}
		}
		if lines != 1 {
			t.Errorf("%s: logged %d times:\n%s", path, lines, w.log)
		}
	}
	if a := w.do(t, get, "/fault"); a.status != http.StatusInternalServerError || strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), "half a page") {
		t.Errorf("got %d %s", a.status, a.body)
	}
	w.srv.renderError = func(*fiber.Ctx, int, *journal.Error) error { panic("the page of errors as well") }
	if a := w.do(t, get, "/fault"); a.status != http.StatusInternalServerError || strings.Contains(string(a.body), "secret") || len(a.body) == 0 {
		t.Errorf("when the page of errors fails: got %d %q", a.status, a.body)
	}
}

func TestSignIn(t *testing.T) {
	// proves OWN-3
	onEach(t, func(t *testing.T, w *world) {
		w.srv.app.Get("/test/in", func(c *fiber.Ctx) error { return w.srv.signIn(c, w.alice.user.ID) })
		w.srv.app.Get("/test/out", w.srv.signOut)
		planted := "planted-by-somebody-else"
		a := w.do(t, get, "/test/in", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: planted}) })
		first := cookieOf(t, a)
		if first.Value == planted || len(first.Value) < 43 || !first.HttpOnly || first.SameSite != http.SameSiteLaxMode || first.Path != "/" || first.Secure {
			t.Errorf("got the cookie %+v", first)
		}
		me := func(value string) int {
			return w.do(t, get, "/api/v1/sessions", browser(person{cookie: value})).status
		}
		if got := me(first.Value); got != http.StatusOK {
			t.Fatalf("signed in: got %d", got)
		}
		if n := w.db.Count(t, w.db.SQL(t), "SELECT count(*) FROM web_session WHERE token = ?", first.Value); n != 0 {
			t.Error("the cookie stands in the database as it is")
		}
		// Signing in again changes the cookie, and the old one ends.
		second := cookieOf(t, w.do(t, get, "/test/in", browser(person{cookie: first.Value})))
		if second.Value == first.Value || me(first.Value) != http.StatusUnauthorized || me(second.Value) != http.StatusOK {
			t.Errorf("after another sign-in: %d with the old cookie, %d with the new one", me(first.Value), me(second.Value))
		}
		gone := cookieOf(t, w.do(t, get, "/test/out", browser(person{cookie: second.Value})))
		if gone.Value != "" || me(second.Value) != http.StatusUnauthorized {
			t.Errorf("signed out: got the cookie %+v and %d", gone, me(second.Value))
		}
		// Whoever is disabled is out, with cookie and token.
		if err := w.store.DisableUser(t.Context(), w.alice.user.Email); err != nil {
			t.Fatal(err)
		}
		if c, b := me(w.alice.cookie), w.do(t, get, "/api/v1/sessions", as(w.alice)).status; c != http.StatusUnauthorized || b != http.StatusUnauthorized {
			t.Errorf("disabled: got %d with the cookie and %d with the token", c, b)
		}
	})
}

func cookieOf(t *testing.T, a answer) *http.Cookie {
	t.Helper()
	list := (&http.Response{Header: a.header}).Cookies()
	if len(list) != 1 {
		t.Fatalf("got %d %s with the cookies %v, want one", a.status, a.body, list)
	}
	return list[0]
}

func TestSignIn_SecureBehindTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"), func(o *Options) { o.PublicURL = "https://agents.example" })
	w.srv.app.Get("/test/in", func(c *fiber.Ctx) error { return w.srv.signIn(c, w.alice.user.ID) })
	if c := cookieOf(t, w.do(t, get, "/test/in")); !c.Secure {
		t.Errorf("got the cookie %+v, want it for TLS only", c)
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	hash, err := HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.SetPassword(t.Context(), w.alice.user.ID, hash); err != nil {
		t.Fatal(err)
	}
	email := w.alice.user.Email
	u, err := w.srv.checkPassword(t.Context(), " "+strings.ToUpper(email), "correct horse")
	if err != nil || u.ID != w.alice.user.ID {
		t.Fatalf("got %v, %v", u, err)
	}
	// Mallory has no password: only links sign in.
	for _, try := range [][2]string{{email, "wrong"}, {email, ""}, {"nobody@example.org", "correct horse"}, {"no address", "x"}, {w.mallory.user.Email, ""}, {w.mallory.user.Email, "correct horse"}} {
		_, err := w.srv.checkPassword(t.Context(), try[0], try[1])
		storetest.WantSlug(t, err, "bad-credentials")
	}
	if err := w.store.DisableUser(t.Context(), email); err != nil {
		t.Fatal(err)
	}
	_, err = w.srv.checkPassword(t.Context(), email, "correct horse")
	storetest.WantSlug(t, err, "bad-credentials")
}

// Who has no account takes as long as who has one, however many threads a host has.
func TestPassword_NobodyCostsTheSame(t *testing.T) {
	threads := &argon2id.DefaultParams.Parallelism // not in parallel: it is everybody's
	defer func(was uint8) { *threads = was }(*threads)
	*threads = 7
	hash, err := HashPassword("correct horse")
	if err != nil {
		t.Fatal(err)
	}
	some, _, _, err1 := argon2id.DecodeHash(hash)
	none, _, _, err2 := argon2id.DecodeHash(nobody)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if *some != *none {
		t.Errorf("a password costs %+v, nobody's %+v", *some, *none)
	}
}

func TestNextPage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/sessions/ses_1?before=3": "/sessions/ses_1?before=3", "": "/", "//evil.test": "/", "https://evil.test/": "/", `/\evil.test`: "/", "/\t/evil.test": "/", "sessions": "/", "javascript:x": "/",
	} {
		if got := nextPage(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	w := &world{db: db, store: db.Open(t), log: &logBuffer{}} // and no user
	w.srv = New(Options{Store: w.store})
	for _, path := range []string{"/healthz", "/readyz"} {
		w.do(t, get, path).want(t, http.StatusOK)
	}
	w.srv.NotReady()
	w.do(t, get, "/healthz").want(t, http.StatusOK)
	if a := w.do(t, get, "/readyz"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("stopping: got %d %v", a.status, a.header)
	}
}
