package acp_test

import (
	"os"
	"testing"

	"holdfast/runner/shim"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "shim" { // this binary keeps the agents of its tests
		os.Exit(shim.Main())
	}
	os.Exit(m.Run())
}
