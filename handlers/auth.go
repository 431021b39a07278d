package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/alexedwards/scs/v2"
	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
)

// signInLife is how long a browser stays signed in.
const signInLife = 30 * 24 * time.Hour

// Members of a browser's session.
const (
	cookieName = "holdfast"
	sessUser   = "user_id"
)

// newSessions makes the manager of signed-in browsers. scs is driven by hand:
// its own middleware is for net/http. There is no idle timeout, which would cost
// a write for every request; the store has the hash of the cookie only (OWN-3).
func newSessions(st scs.CtxStore, origin string) *scs.SessionManager {
	return &scs.SessionManager{ // scs.New would start a goroutine that nobody stops
		Lifetime: signInLife, Store: st, Codec: scs.GobCodec{}, HashTokenInStore: true,
		Cookie: scs.SessionCookie{
			Name: cookieName, HttpOnly: true, Path: "/", SameSite: http.SameSiteLaxMode, Persist: true,
			Secure: strings.HasPrefix(origin, "https:"),
		},
	}
}

// identity is who makes a request, and by what.
type identity struct {
	User   store.User
	Scope  store.Scope
	bearer string // the token, or
	cookie string // the cookie that it came by
}

// current is who makes the request. Only handlers of routes for owners may call it.
func current(c *fiber.Ctx) identity { return c.Locals(keyIdentity).(identity) }

// guard puts a route's access in front of its handler, and a deadline on its context.
func (s *Server) guard(r route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		outer := c.UserContext()
		ctx, cancel := context.WithTimeout(outer, requestTime)
		defer func() { // a page for an error is drawn after this, under a context that hasn't ended
			cancel()
			c.SetUserContext(outer)
		}()
		c.SetUserContext(ctx)
		if r.access == owner {
			if err := s.requireOwner(c, r.need); err != nil {
				if !isAPI(c) && journal.Is(err, journal.Unauthenticated) {
					return s.askSignIn(c)
				}
				return err
			}
			c.SetUserContext(s.masking(c.UserContext(), current(c).User.ID))
			outer = s.masking(outer, current(c).User.ID)
			if err := checkDrawnFor(c); err != nil {
				return err
			}
		}
		return r.handle(c)
	}
}

// masking is a context in which nothing is drawn that an owner's secrets are in.
func (s *Server) masking(ctx context.Context, owner string) context.Context {
	return components.Masking(ctx, s.store.Cleaner(owner))
}

// checkDrawnFor refuses a form that was drawn for somebody else, who was signed
// in on the same browser before: what they typed isn't this person's (OWN-1).
// Code: conflict.
func checkDrawnFor(c *fiber.Ctx) error {
	if isAPI(c) || c.Method() != fiber.MethodPost {
		return nil
	}
	whose := string(c.Request().PostArgs().Peek("for"))
	if whose == "" || whose == current(c).User.ID {
		return nil
	}
	return journal.Errorf(journal.Conflict, "This page was opened while somebody else was signed in here. Nothing was recorded, and what was typed in it is not shown. Open it again to go on as who is signed in now.").Typed("drawn-for-another")
}

// requireOwner finds out who asks, and whether that may be asked with what they brought.
// Codes: unauthenticated, forbidden.
func (s *Server) requireOwner(c *fiber.Ctx, need store.Scope) error {
	id, err := s.identify(c)
	if err != nil {
		return err
	}
	if !covers(id.Scope, need) {
		return journal.Errorf(journal.Forbidden, "This token may %s only. Nothing was recorded. Use a token whose scope is %s.", map[store.Scope]string{store.ScopeRead: "read", store.ScopePrompt: "read and prompt"}[id.Scope], need).
			Typed("token-scope").With("scope", id.Scope).With("needs", need)
	}
	c.Locals(keyIdentity, id)
	return nil
}

func covers(has, need store.Scope) bool {
	rank := map[store.Scope]int{store.ScopeRead: 1, store.ScopePrompt: 2, store.ScopeAll: 3}
	return rank[has] >= rank[need] && rank[has] > 0
}

// identify reads the token, under /api only, else the cookie. A token that isn't
// valid is never made up for by a cookie. Codes: unauthenticated, invalid (two
// headers that differ).
func (s *Server) identify(c *fiber.Ctx) (identity, error) {
	if !isAPI(c) {
		return s.byCookie(c.UserContext(), c.Cookies(cookieName))
	}
	h, err := onlyHeader(c, fiber.HeaderAuthorization)
	if err != nil {
		return identity{}, err
	}
	if h != "" {
		scheme, secret, ok := strings.Cut(h, " ")
		if secret = strings.TrimSpace(secret); !ok || !strings.EqualFold(scheme, "Bearer") || secret == "" {
			return identity{}, journal.Errorf(journal.Unauthenticated, "Authorization must be: Bearer, a blank, a token.").Typed("bad-token")
		}
		u, t, err := s.store.TokenUser(c.UserContext(), secret)
		return identity{User: u, Scope: t.Scope, bearer: secret}, err
	}
	return s.byCookie(c.UserContext(), c.Cookies(cookieName))
}

// byCookie finds who is signed in with a cookie. Code: unauthenticated.
func (s *Server) byCookie(ctx context.Context, cookie string) (identity, error) {
	if cookie == "" {
		return identity{}, signInNeeded()
	}
	ctx, err := s.sessions.Load(ctx, cookie)
	if err != nil {
		return identity{}, err
	}
	id := s.sessions.GetString(ctx, sessUser)
	if id == "" {
		return identity{}, signInNeeded()
	}
	u, err := s.store.UserByID(ctx, id)
	if journal.Is(err, journal.NotFound) { // disabled since
		return identity{}, signInNeeded()
	}
	return identity{User: u, Scope: store.ScopeAll, cookie: cookie}, err
}

func signInNeeded() error {
	return journal.Errorf(journal.Unauthenticated, "Sign in first, or send a token: Authorization: Bearer TOKEN.").Typed("unauthenticated")
}

// still checks again who asked, for something that lasts (RDR-7). gone is "" as
// long as they may, else why not any more.
func (s *Server) still(ctx context.Context, id identity) (gone string, err error) {
	if id.bearer != "" {
		_, _, err = s.store.TokenUser(ctx, id.bearer)
		gone = "revoked"
	} else {
		_, err = s.byCookie(ctx, id.cookie)
		gone = "signed_out"
	}
	if journal.Is(err, journal.Unauthenticated) {
		return gone, nil
	}
	return "", err
}

// nextPage is where to go after the sign-in: a path of this server, else "/".
func nextPage(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// signIn begins a browser's session for the user, under a new cookie: one that
// somebody planted before is worth nothing.
func (s *Server) signIn(c *fiber.Ctx, userID string) error {
	ctx, err := s.sessions.Load(c.UserContext(), c.Cookies(cookieName))
	if err != nil {
		return err
	}
	if err := s.sessions.Clear(ctx); err != nil {
		return err
	}
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	s.sessions.Put(ctx, sessUser, userID)
	token, expiry, err := s.sessions.Commit(ctx)
	if err != nil {
		return err
	}
	s.setCookie(c, token, expiry)
	return nil
}

// signOut ends the browser's session. Its streams end with it (RDR-7).
func (s *Server) signOut(c *fiber.Ctx) error {
	ctx, err := s.sessions.Load(c.UserContext(), c.Cookies(cookieName))
	if err != nil {
		return err
	}
	if err := s.sessions.Destroy(ctx); err != nil {
		return err
	}
	s.setCookie(c, "", time.Unix(1, 0))
	return nil
}

func (s *Server) setCookie(c *fiber.Ctx, value string, expires time.Time) {
	k := s.sessions.Cookie
	c.Cookie(&fiber.Cookie{
		Name: k.Name, Value: value, Path: k.Path, Expires: expires, HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
		Secure: k.Secure || c.Context().IsTLS(),
	})
}

// passwordCost is the same on every host. The defaults of argon2id take as many
// threads as the host has, so that the check of nobody would be told by its time.
var passwordCost = &argon2id.Params{Memory: 64 << 10, Iterations: 1, Parallelism: 2, SaltLength: 16, KeyLength: 32}

// HashPassword makes what is stored of a password.
func HashPassword(password string) (string, error) {
	return argon2id.CreateHash(password, passwordCost)
}

// nobody is the hash that is compared when there is no such user, so that the
// time of an answer doesn't tell who has an account. It costs what passwordCost says.
const nobody = "$argon2id$v=19$m=65536,t=1,p=2$c29tZXNhbHRzb21lc2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// checkPassword finds the user of an address and a password. Code:
// unauthenticated, the same for a wrong address and a wrong password.
func (s *Server) checkPassword(ctx context.Context, email, password string) (store.User, error) {
	wrong := journal.Errorf(journal.Unauthenticated, "Address and password don't match an account.").Typed("bad-credentials")
	var u store.User
	hash := nobody
	if email, err := store.Email(email); err == nil {
		u, err = s.store.UserByEmail(ctx, email)
		if err != nil && !journal.Is(err, journal.NotFound) {
			return store.User{}, err
		}
		if u.PasswordHash != "" {
			hash = u.PasswordHash
		}
	}
	select { // each check takes 64 MiB
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
	case <-ctx.Done():
		return store.User{}, &journal.Error{Code: journal.Unavailable, Err: context.Cause(ctx), Message: "Too many sign-ins at once. Try again in a moment."}
	}
	ok, err := argon2id.ComparePasswordAndHash(password, hash)
	if err != nil {
		return store.User{}, err
	}
	if !ok || hash == nobody || u.Disabled {
		return store.User{}, wrong
	}
	return u, nil
}
