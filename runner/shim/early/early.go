// Package early makes of a process that was started as holdfast shim a shim, before
// the packages are initialised that only a server needs.
//
// Each command has a process of this binary. Of the time that one takes to begin, a
// third goes into tables and expressions of packages that a shim never uses, and
// they would stand in its memory as long as the command runs. Go initialises packages
// in the order of their import paths, as soon as what they import is initialised:
// this one comes before most. Nothing depends on that but time and memory: main
// does the same for a shim that comes so far.
package early

import (
	"os"

	"holdfast/runner/shim"
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == "shim" {
		os.Exit(shim.Main())
	}
}
