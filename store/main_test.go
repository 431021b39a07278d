package store_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"holdfast/store"
)

// lockHelper makes this binary a process that takes a lock, says so and waits to be killed.
const lockHelper = "HOLDFAST_TEST_LOCK"

// defaultChecks is how often rapid runs a property here, unless -rapid.checks says otherwise.
const defaultChecks = 60

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
	flag.Parse()
	set := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { set[f.Name] = true })
	// Tests wait for disks more than they compute, so more run at once than there are processors.
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(defaultChecks), "rapid.shrinktime": "5s", "test.parallel": "6"} {
		if set[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	// The pool of test databases keeps one connection for life.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
}
