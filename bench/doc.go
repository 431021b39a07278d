// Bench measures Holdfast against bare loops in the same run: the same rows,
// in the same schema, under the same settings, by prepared statements, with
// group commit, and nothing else. What it prints are ratios; the rates beside
// them are those of the machine on which it ran.
//
//	B1, B2  admission of prompts over HTTP by the built binary, on SQLite and Postgres
//	B3      events appended by runs, through the store's door, on both
//	B4      from the commit of an event to its bytes at the readers of streams
//	B5      memory of idle streams
//	B6      the newest window of a long session against that of a short one
//	B11     size, start and memory of the binary
//
// Both sides of a ratio take turns in each round. A ratio is that of one
// round; the median over the rounds is printed, with the least and the
// greatest. Nothing here is a test: a slow machine fails no build.
//
// The files server.go, client.go and admission.go are the product's side,
// bare.go and rows.go the other: they are to be read with the same care.
package main
