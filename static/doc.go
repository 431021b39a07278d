// Package static holds the assets of the pages, embedded in the binary and
// served under names that carry a hash of their content, so that a browser may
// keep them for ever.
//
// app.css is built from views/app.css, and vendor is copied from the packages
// that package-lock.json pins: `make generate` writes both. Fonts, icons and
// our own scripts stand here as they are. Licences are assets too, so that the
// binary carries them.
package static
