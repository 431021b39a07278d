//go:build !race

package components_test

const raced = 1
