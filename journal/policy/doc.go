// Package policy decides what a call of an agent may do: from the rules and
// the preset of a session, and from an analysis of the shell text it wants to
// run. It is pure: text in, verdict out; no file, clock or process is touched.
//
// # Model
//
// A call is turned into resources (ShellResources, FileResources): the things
// that it would touch. Evaluate judges each resource by the last rule that
// matches it, the preset's rules first and the session's own after them, and
// takes the strictest outcome over all resources: deny, then ask, then allow.
// What no rule matches is asked.
//
// # Shell
//
// Every simple command of a text is one resource, wherever it stands (lists,
// pipelines, subshells, substitutions, bodies of if, while, for and case). Its
// words are joined by single spaces, with quoting resolved where it is static
// and put back, in single quotes, around a word that would otherwise read as
// several. Redirects are edit and read resources. An assignment in front of a
// command stays in its text, so a rule for the bare command doesn't match it.
//
// A text is opaque, always asked and never allowed by any rule, when what it
// runs can't be read from it: it doesn't parse, the name of a command is
// computed, it starts another command (timeout, env, xargs, command, sh -c, …;
// a later part will look inside), it feeds a program text to an interpreter,
// it changes what names mean (functions, aliases, PATH, LD_*, GIT_*, …), or
// sh and bash would read it differently in a way that can't be joined. The
// text is read as bash and, where that works, as POSIX sh too; the resources
// of both readings count.
//
// # What a preset allows is proven, what a person's rule allows is believed
//
// A preset's allow for a shell command counts only if the analysis proved the
// command harmless: known options (an allow-list, so abbreviations and new
// options are asked), known arguments, no path that leaves the workspace or
// names a secret. Everything else is Unproven: a preset asks, while a rule that
// the person wrote for the session still allows.
//
// # Folders
//
// A folder that is changed with all in it (Folder, Names) is judged by its own
// name, by each name that lies there, and by rules that name files below it. A
// preset's allow doesn't count where not all of it was looked at.
//
// # Limits
//
// Paths are compared as text. Links are for the caller to resolve: it has the
// file system. A recursive search of a folder (grep -r) reads what is in it,
// secrets included; only names that are written in the command are seen.
// `npm test`, `make test`, `go test` and `pytest` run code of the workspace,
// which an agent with the workspace preset may have written itself: the preset
// keeps an honest agent from surprises, it is no sandbox.
package policy
