package storetest

import (
	"context"
	"errors"
	"testing"

	"holdfast/journal"
	"holdfast/store"
)

// CheckInvariants fails the test unless the journal is whole: seqs are dense,
// tables equal what their events say, each receipt has its event, claims and
// execution ids agree. Cleanups of stores from Open and Each call it.
func CheckInvariants(t testing.TB, s *store.Store) {
	t.Helper()
	if t.Failed() { // the first fault is the one to read
		return
	}
	// It may run in a cleanup, when the test's own context has ended.
	r, err := s.Verify(context.WithoutCancel(t.Context()), store.VerifyOptions{})
	if err != nil {
		t.Errorf("verify: %v", err)
		return
	}
	for _, c := range r.Checks {
		for _, f := range c.Faults {
			t.Errorf("verify: %s: %s", c.Name, f)
		}
	}
}

func asError(err error, target **journal.Error) bool { return errors.As(err, target) }
