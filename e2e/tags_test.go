//go:build !crashpoints

package e2e

// crashpoints says that the tests, and so the binary, have labelled crash points.
const crashpoints = false
