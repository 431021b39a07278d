package store_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"holdfast/store"
)

// lockHelper makes this binary a process that takes a lock, says so and waits to be killed.
const lockHelper = "HOLDFAST_TEST_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockHelper); path != "" {
		if _, err := store.LockJournal(path); err != nil {
			os.Exit(1)
		}
		if _, _, err := store.LockState(path + ".state"); err != nil {
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(os.Stdout, "locked")
		select {}
	}
	// The pool of test databases keeps one connection for life.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
}
