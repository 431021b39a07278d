// Package pages draws whole pages. Each has a model of plain values; a page
// works without a script, and every control on it is a form or a link.
package pages
