package main

import (
	"os"
	"testing"

	"holdfast/runner/shim"
)

// TestMain makes the test binary a shim where one is started, as main does with the
// product's.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "shim" {
		os.Exit(shim.Main())
	}
	os.Exit(m.Run())
}
