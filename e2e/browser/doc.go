// Package browser tests the pages of the built binary in Chromium: the keys
// that a person presses, what the page then shows, and what axe-core says of it.
//
// # How a test is made
//
//	w := newWorld(t, "sqlite")      // a database, a user, a workspace
//	s := w.serve()                  // a server of the real binary, ready
//	b := w.tab(s.base)              // a browser of its own: no cookies but its own
//	b.signIn()
//	b.visit("/sessions/new")
//	b.fill("#prompt", steps("echo hi"))   // by keyboard: Tab there, type
//	b.press("[data-testid=new-session-form] button")
//	b.until("the session runs", `…an expression of the page…`)
//
// One Chromium serves all tests; each tab of newWorld has a browser context of
// its own, and at most two worlds live at once. What a page says on its console
// as an error, a violation of the Content-Security-Policy and a dialog fail the
// test whose page it is.
//
// # Keyboard
//
// fill, press, choose and tabTo use Tab, Shift+Tab, arrows, Enter, Space and
// typing, nothing else, and hold every stop on their way against WCAG: the focus
// is seen, and nothing covers it (keys_test.go).
//
// # A page for axe
//
// Add a line to the table of pages_test.go; each session of the package seed has
// its page there already. They are looked at on one server that seed has filled,
// in two sets of tabs that stay signed in. Each page is held against axe-core in
// both themes, wide and narrow, with every details open; looked at in 320 pixels,
// also with the text spacing of WCAG 1.4.12; and walked through by keyboard in
// both directions.
//
// scripts/chromium installs Chromium and axe-core where they are missing. Without
// them the tests fail: a skipped test proves nothing.
package browser
