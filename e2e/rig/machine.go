package rig

import (
	"os"
	"path/filepath"
	"strings"
)

// Machine says how busy the machine is, for the words of a test that waited in vain:
// one that stood still is told apart from a fault by it. Where the system doesn't tell,
// it says less.
func Machine() string {
	var said []string
	for _, name := range []string{"loadavg", "pressure/cpu", "pressure/io", "pressure/memory"} {
		if text, err := os.ReadFile(filepath.Join("/proc", name)); err == nil {
			first, _, _ := strings.Cut(string(text), "\n")
			said = append(said, name+" "+first)
		}
	}
	return "the machine: " + strings.Join(said, "; ")
}
