package shim

import (
	"context"
	"fmt"
	"os"
	"time"

	"holdfast/runner/tool"
)

// serverVariable makes the test binary a server that a test kills: its value is the
// folder.
const serverVariable = "SHIM_TEST_SERVER"

// serveTest prepares the script SHIM_TEST_SCRIPT, says so, and opens the gate if it is
// told to on stdin. It never ends by itself.
func serveTest(dir string) {
	fail := func(err error) {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	r, err := Open(dir)
	if err != nil {
		fail(err)
	}
	c, err := r.Prepare(context.Background(), Spec{Spec: tool.Spec{
		CallID: "call_served", N: 1, Interp: []string{"sh", "-eu"}, Script: os.Getenv("SHIM_TEST_SCRIPT"), Dir: "/",
		Env: tool.BaseEnv(os.Environ()), Timeout: time.Hour,
	}})
	if err != nil {
		fail(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, "prepared")
	var word string
	if _, err := fmt.Scan(&word); err == nil && word == "go" {
		if err := c.Go(); err != nil {
			fail(err)
		}
		_, _ = fmt.Fprintln(os.Stdout, "gone")
	}
	select {}
}
