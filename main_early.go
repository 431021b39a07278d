//go:build !crashpoints

package main

// A build with crash points has to hand them to its shims first: see main.
import _ "holdfast/runner/shim/early"
