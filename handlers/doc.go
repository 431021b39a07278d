// Package handlers is HTTP: requests in; pages, JSON and event streams out.
//
// A handler reads what a person or a program asks for, calls one method of the
// store, and answers. It never calls the runner: both meet in the journal. What
// it knows of runners it reads from the table of workers.
//
// # Who may do what
//
// routes.go and page_routes.go are the tables of all routes. Each route says who
// may use it and which scope a token needs for it; guard enforces that before
// the handler runs, so a handler of a route for owners always has a current
// user, whose id goes into every query (OWN-1). Cross-site posts are refused
// before anything else is looked at (OWN-2).
//
// # Errors
//
// A handler returns its error. fail, the one error handler, turns it into a
// status, and into a problem document under /api or a page elsewhere. People
// read the Message of a journal.Error, never the text of another error.
//
// # Streams
//
// stream.go follows a journal for one reader. It holds no transaction and no
// buffer: it reads a bounded page after the last seq that it has sent, writes
// it, flushes it, and waits to be woken. Strings of a request are copied before
// the stream begins, since fiber recycles its context when the handler returns.
package handlers
