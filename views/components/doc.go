// Package components draws the parts that pages are made of: readings, cards,
// journal entries, forms. A component is given what it shows and nothing else;
// it reaches neither the database nor the runner, and every word that depends
// on a state is decided here, in Go, where a table test can see it.
//
// # Text
//
// Text of people, agents and commands is data. It is escaped where it is
// written, and a character that would act on the page or hide what stands there
// (control, bidirectional, invisible) is drawn as a visible escape (Text).
// Nobody can allow what they can't read: a payload that is long or holds such
// characters has its buttons only on its own page (Payload.Short).
//
// # Time
//
// All times come from the database's clock and are shown in UTC, in a time
// element. Now is always given.
package components
