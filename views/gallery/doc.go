// Package gallery draws every component in every state on one page, from
// fixtures: what it looks like can be seen without bringing it about. Builds for
// development serve the page as /dev/components (handlers/page_dev.go, build tag
// dev); nothing else imports this package, so no other build contains it.
//
// Whoever adds a component adds its states to a section here: a test fails until
// each exported component is drawn.
package gallery
