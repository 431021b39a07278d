//go:build !linux

package store

// networkFileSystem knows nothing outside Linux: docs/operations.md says so.
func networkFileSystem(string) string { return "" }
