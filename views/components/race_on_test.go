//go:build race

package components_test

// raced multiplies bounds of memory: under the race detector pools keep nothing.
const raced = 16
