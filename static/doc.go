// Package static holds the assets of the pages, embedded in the binary and
// served under names that carry a hash of their content, so that a browser may
// keep them for ever.
package static
