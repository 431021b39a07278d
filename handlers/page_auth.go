package handlers

import (
	"context"
	"net/http"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// Bounds of a password.
const (
	MinPassword = 8    // characters
	MaxPassword = 1024 // bytes
)

// showSetup: GET /setup?code=. The printed link leads here.
func (s *Server) showSetup(c *fiber.Ctx) error {
	code, err := queryText(c, "code")
	if err != nil {
		return err
	}
	if code == "" {
		return s.withoutCode(c)
	}
	if err := s.store.SetupCode(c.UserContext(), code); err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.SetupPage(pages.Setup{Frame: s.bareFrame("Set up"), Code: code}))
}

// withoutCode answers who came without a link.
func (s *Server) withoutCode(c *fiber.Ctx) error {
	has, err := s.store.HasUsers(c.UserContext())
	if err != nil {
		return err
	}
	if has {
		return seeOther(c, "/login")
	}
	return noUserYet()
}

func noUserYet() error {
	return journal.Errorf(journal.Forbidden, "Nobody can sign in here yet. Open the link that the server printed when it started; it makes the first user.").Typed("setup-needed")
}

// createFirstUser: POST /setup. It signs in and leads to the first session.
func (s *Server) createFirstUser(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	p := pages.Setup{Frame: s.bareFrame("Set up"), Code: f.word("code"), Email: f.word("email")}
	// The code first: a stranger must not make the server hash passwords.
	if err := s.store.SetupCode(c.UserContext(), p.Code); err != nil {
		if _, ierr := s.identify(c); ierr == nil { // the same form twice
			return seeOther(c, "/sessions/new")
		}
		return err
	}
	password := f.text("password")
	if p.Problems = checkCredentials(p.Email, password); len(p.Problems) > 0 {
		return draw(c, http.StatusUnprocessableEntity, pages.SetupPage(p))
	}
	hash, err := s.hashPassword(c.UserContext(), password)
	if err != nil {
		return err
	}
	u, err := s.store.FirstUser(c.UserContext(), p.Code, p.Email, hash)
	if journal.Is(err, journal.Unprocessable) {
		p.Problems = []components.Problem{{Field: "email", Text: messageOf(err)}}
		return draw(c, http.StatusUnprocessableEntity, pages.SetupPage(p))
	}
	if err != nil {
		return err
	}
	if err := s.signIn(c, u.ID); err != nil {
		return err
	}
	return seeOther(c, "/sessions/new")
}

func checkCredentials(email, password string) []components.Problem {
	var out []components.Problem
	if email == "" {
		out = append(out, components.Problem{Field: "email", Text: "Enter your email address"})
	}
	if utf8.RuneCountInString(password) < MinPassword {
		out = append(out, components.Problem{Field: "password", Text: "Choose a password of at least 8 characters"})
	}
	if len(password) > MaxPassword {
		out = append(out, components.Problem{Field: "password", Text: "Choose a password of at most 1024 bytes"})
	}
	return out
}

// hashPassword is HashPassword, a few at a time: each takes 64 MiB.
func (s *Server) hashPassword(ctx context.Context, password string) (string, error) {
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
	case <-ctx.Done():
		return "", &journal.Error{Code: journal.Unavailable, Err: context.Cause(ctx), Message: "Too many sign-ins at once. Nothing was recorded; try again in a moment."}
	}
	return HashPassword(password)
}

// showLogin: GET /login, and GET /login?code= for a sign-in link. A link is
// not spent by opening it: scanners of mail open links too.
func (s *Server) showLogin(c *fiber.Ctx) error {
	code, err := queryText(c, "code")
	if err != nil {
		return err
	}
	next, err := queryText(c, "next")
	if err != nil {
		return err
	}
	if code == "" {
		has, err := s.store.HasUsers(c.UserContext())
		if err != nil {
			return err
		}
		if !has {
			return noUserYet()
		}
	}
	p := pages.SignIn{Frame: s.bareFrame("Sign in"), Next: nextPage(next), Code: code}
	p.Ended = s.endedSignIn(c)
	return draw(c, http.StatusOK, pages.SignInPage(p))
}

// createLogin: POST /login, by address and password, or by the code of a link.
func (s *Server) createLogin(c *fiber.Ctx) error {
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	if code := f.word("code"); code != "" {
		return s.createLinkLogin(c, code)
	}
	p := pages.SignIn{Frame: s.bareFrame("Sign in"), Next: nextPage(f.text("next")), Email: f.word("email"), Draft: formDraft(f)}
	err = s.limitSignIn(c, p.Email)
	var u store.User
	if err == nil {
		u, err = s.checkPassword(c.UserContext(), p.Email, journal.Cut(f.text("password"), MaxPassword))
	}
	if journal.Is(err, journal.Unauthenticated) || journal.Is(err, journal.RateLimited) { // the form goes on holding what it holds
		p.Problems = []components.Problem{{Field: "email", Text: messageOf(err)}}
		status, _ := explain(err)
		return draw(c, status, pages.SignInPage(p))
	}
	if err != nil {
		return err
	}
	if err := s.signIn(c, u.ID); err != nil {
		return err
	}
	return s.afterSignIn(c, u, &p)
}

func (s *Server) createLinkLogin(c *fiber.Ctx, code string) error {
	u, err := s.store.SpendLink(c.UserContext(), code)
	if journal.Is(err, journal.Gone) {
		if _, ierr := s.identify(c); ierr == nil { // the same form twice
			return seeOther(c, "/")
		}
	}
	if err != nil {
		return err
	}
	if err := s.signIn(c, u.ID); err != nil {
		return err
	}
	return seeOther(c, "/")
}

// createLogout: POST /logout. Sessions go on.
func (s *Server) createLogout(c *fiber.Ctx) error {
	if err := s.signOut(c); err != nil {
		return err
	}
	return seeOther(c, "/login")
}
