package handlers

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/time/rate"

	"holdfast/journal"
)

// maxBuckets bounds the owners that are remembered; past it, those whose bucket
// is full again are forgotten, which changes nothing for them.
const maxBuckets = 10_000

// limiter bounds how often something may be done in one name, such as what one
// owner may submit (ADM-10).
type limiter struct {
	rate    rate.Limit
	burst   int
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

func newLimiter(perSecond float64, burst int) *limiter {
	return &limiter{rate: rate.Limit(perSecond), burst: burst, buckets: map[string]*rate.Limiter{}}
}

// wait takes one submission from the owner's bucket, or says how long until there is one.
func (l *limiter) wait(owner string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[owner]
	if b == nil {
		l.forget(now)
		b = rate.NewLimiter(l.rate, l.burst)
		l.buckets[owner] = b
	}
	r := b.ReserveN(now, 1)
	if d := r.DelayFrom(now); d > 0 {
		r.CancelAt(now)
		return d
	}
	return 0
}

func (l *limiter) forget(now time.Time) {
	if len(l.buckets) < maxBuckets {
		return
	}
	for owner, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, owner)
		}
	}
	for owner := range l.buckets { // all are busy: one of them gets a full bucket too early
		if len(l.buckets) < maxBuckets {
			return
		}
		delete(l.buckets, owner)
	}
}

// Sign-ins with one address from one client: ten at once, then one in six seconds.
const (
	signInRate  = 1.0 / 6
	signInBurst = 10
)

// limitSignIn slows down who guesses passwords. The client is part of the
// bucket's name, so that nobody can keep somebody else from signing in.
func (s *Server) limitSignIn(c *fiber.Ctx, email string) error {
	d := s.signIns.wait(strings.ToLower(journal.Cut(email, 254))+" "+c.IP(), time.Now())
	if d == 0 {
		return nil
	}
	return journal.Errorf(journal.RateLimited, "Too many tries to sign in with this address. Nothing is locked: wait %d seconds and try again.", retryAfter(c, d)).Typed("rate-limited")
}

// limit refuses a submission past the owner's rate. Code: rate_limited.
func (s *Server) limit(c *fiber.Ctx) error {
	d := s.limits.wait(current(c).User.ID, time.Now())
	if d == 0 {
		return nil
	}
	retryAfter(c, d)
	return journal.Errorf(journal.RateLimited, "Too much was sent at once: %g a second are taken, %d at most in one burst. Nothing was recorded. Send it again a little later, with the same key.", float64(s.limits.rate), s.limits.burst).Typed("rate-limited")
}

// retryAfter says when to try again, in the header, and gives it in seconds.
func retryAfter(c *fiber.Ctx, d time.Duration) int {
	seconds := int(math.Ceil(d.Seconds()))
	c.Set(fiber.HeaderRetryAfter, strconv.Itoa(seconds))
	return seconds
}
