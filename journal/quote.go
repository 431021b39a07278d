package journal

import "strings"

// Quote is what somebody else wrote, an agent or a program, as it stands in a sentence of
// the server's: on one line, at most n bytes of it, in quotes that nothing in it can end.
// So nobody can take it for what the server says.
func Quote(said string, n int) string {
	return "“" + noQuotes.Replace(Cut(strings.Join(strings.Fields(said), " "), n)) + "”"
}

// noQuotes leaves no quotes of the kind that Quote writes, nor what looks like one.
var noQuotes = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`, "〝", `"`, "〞", `"`, "＂", `"`, "❝", `"`, "❞", `"`)

// UnreadAnswer is the error of an attempt whose answer can't be read.
const UnreadAnswer = "its answer can't be read"
