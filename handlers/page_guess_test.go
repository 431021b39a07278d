package handlers

import (
	"testing"

	"holdfast/store/storetest"
)

// Who guesses passwords is slowed down; nobody else is, and no account is locked.
func TestPages_GuessingIsSlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	w.srv.signIns = newLimiter(0.001, 2)
	b := w.tab(t, person{})
	form := `[data-testid="login-form"]`
	try := func(email string, want int) {
		t.Helper()
		b.open("/login").submit(form, vals("email", email, "password", "wrong horse")).page().want(want)
	}
	try(w.alice.user.Email, 401)
	try(w.alice.user.Email, 401)
	try(w.alice.user.Email, 429)
	if b.header.Get("Retry-After") == "" {
		t.Error("it isn't said when to try again")
	}
	try("somebody@else.example", 401)
}
