package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	a, err := newAgent(os.Getenv("FAKEAGENT_SCRIPT"), os.Getenv("FAKEAGENT_LOG"), os.Getenv("FAKEAGENT_STATE"))
	if err != nil {
		fail(err)
	}
	a.serve(context.Background(), os.Stdin)
}

// fail ends the agent: the script, or its world, is not as it must be.
func fail(err error) {
	fmt.Fprintln(os.Stderr, "fakeagent:", err)
	os.Exit(2)
}
