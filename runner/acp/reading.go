package acp

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"holdfast/runner/acp/wire"
)

// Members that belong to reading, by their names without case, dashes and underscores: an
// agent's word that a call only reads holds as far as all that it gave its tool is of them.
var (
	// readFrom name what is looked at.
	readFrom = []string{
		"file", "files", "filepath", "filepaths", "filename", "filenames", "path", "paths", "absolutepath", "absolutefilepath", "relativepath", "notebookpath", "targetfile", "targetdirectory", "uri",
		"dir", "dirs", "dirpath", "directory", "directories", "folder", "folders", "root", "cwd", "workdir",
		"pattern", "patterns", "glob", "globs", "globpattern", "regex", "regexp", "query", "searchterm", "searchpattern", "filepattern", "includepattern", "namepattern",
	}
	// readHow say how much of it, and in which form: by numbers, by true or false, or by a word of howWords.
	readHow = []string{
		"type", "filetype", "offset", "limit", "line", "lines", "start", "end", "startline", "endline", "linestart", "lineend", "startlinenumber", "endlinenumber",
		"viewrange", "range", "ranges", "page", "pages", "cell", "cellid", "headlimit", "maxlines", "maxresults", "maxcount", "maxdepth", "maxmatches", "maxbytes", "depth", "count", "numlines", "context", "contextlines", "before", "after",
		"a", "b", "c", "i", "n", "o", "l", "outputmode", "multiline", "casesensitive", "caseinsensitive", "ignorecase", "fixedstrings", "literal", "isregex", "wholeword", "recursive", "followsymlinks", "hidden", "showhidden", "includehidden",
		"respectgitignore", "respectgeminiignore", "nogitignore", "usedefaultexcludes", "sort", "sortby", "order", "encoding", "format", "timeout", "timeoutms",
	}
	howWords = strings.Fields("true false null none all auto default start end first last file files directory directories dir folder symlink " +
		"content contents count fileswithmatches fileswithoutmatches path paths name modified mtime atime ctime created accessed size time date relevance extension asc desc ascending descending " +
		"text plain raw json jsonl yaml toml xml csv markdown md html base64 hex image pdf notebook utf8 utf16 utf16le utf16be ascii latin1 iso88591 windows1252 shiftjis gbk " +
		"go rust rs py python js jsx ts tsx javascript typescript java kotlin kt swift c h cc cpp cxx hpp cs csharp css scss less vue svelte php ruby rb perl lua sh bash zig dart elixir ex erlang haskell hs scala clojure ocaml r sql proto graphql docker dockerfile make cmake tex txt log ini env lock svg")
	// readNot say which of it is left out, or only looked at: by patterns.
	readNot = []string{"include", "exclude", "excludes", "excludepattern", "ignore"}
	// readWhy are words about it.
	readWhy = []string{"description", "explanation"}
	// thoughts are what a call that thinks is given.
	thoughts = []string{"thought", "thoughts", "thinking"}
	// written are what is written somewhere: beside a file that is a change, whatever it is called.
	written = []string{
		"content", "contents", "filecontent", "filecontents", "filetext", "text", "newtext", "newcontent", "newcontents", "newsource", "newstring", "newstr", "oldstring", "oldstr", "oldtext", "inserttext", "insert", "append",
		"replace", "replacement", "replacewith", "data", "edits", "changes", "diff", "patch", "patchtext", "unifieddiff", "value", "bytes",
	}
)

// onlyReads reports whether all that was told of a call is consistent with its agent's word
// that it changes nothing: all of it belongs to reading, and says what would be read. The
// word alone counts for nothing (CAL-2).
func (t told) onlyReads() bool {
	tool := func(name string) bool { return strings.HasPrefix(name, "mcp__") }
	if !slices.Contains([]string{"read", "search", "think"}, t.Kind) || len(t.Diffs) > 0 || tool(t.Title) || tool(t.Name) {
		return false
	}
	says, all := slices.ContainsFunc(t.Paths, func(p string) bool { return p != "" }), true
	isObject := t.each(func(key string, v json.RawMessage) {
		from, of := t.readsBy(key, v)
		says, all = says || from, all && of
	})
	return isObject && says && all
}

// searchesAll reports whether a call that only looks for something says what, so that without a
// place it looks in the workspace. A query may be one of anything.
func (t told) searchesAll() bool {
	what := false
	t.each(func(key string, v json.RawMessage) {
		from, of := t.readsBy(key, v)
		what = what || from && of && !speaksOf(plain(key), []string{"query", "term"})
	})
	return what && t.Kind == "search" && t.onlyReads()
}

// readsBy reports of a member whether it says what would be read, and whether it belongs to
// reading at all.
func (t told) readsBy(key string, v json.RawMessage) (from, of bool) {
	if !says(v) {
		return false, true
	}
	const longest = 100 // more than any of them takes
	if len(key) > longest || !flat(v) {
		return false, false
	}
	name := plain(key)
	switch {
	case name == "query" && t.Kind != "search": // of a tool that isn't known it may say anything
		return false, false
	case t.Kind == "think" && slices.Contains(thoughts, name):
		return true, true
	case slices.Contains(readFrom, name):
		return true, speaksOf(name, ofPatterns) || !speaksOf(name, ofFiles) || here(v)
	}
	switch {
	case slices.Contains(readHow, name):
		return false, eachText(v, func(text string) bool { return saysHow(name, text) })
	case slices.Contains(readNot, name):
		return false, eachText(v, func(text string) bool { return !strings.ContainsAny(text, "\n;`") })
	}
	return false, slices.Contains(readWhy, name)
}

// saysHow reports whether a text is a number, or some of them, a word that is known, or the
// name of a part of a notebook: other words could say anything.
func saysHow(name, text string) bool {
	const longest = 40 // more than any of them takes
	if len(text) > longest {
		return false
	}
	if name == "cell" || name == "cellid" {
		return !strings.ContainsFunc(text, func(r rune) bool {
			return r != '-' && r != '_' && (r >= 128 || !unicode.IsLetter(r) && !unicode.IsDigit(r))
		})
	}
	return strings.Trim(text, "0123456789-+.,: ") == "" || slices.Contains(howWords, plain(text))
}

// eachText reports whether each text of a value is of a kind; what is none is a number, say.
func eachText(v json.RawMessage, is func(text string) bool) bool {
	all := true
	wire.EachLeaf(v, func(leaf json.RawMessage) bool {
		all = leaf[0] != '"' || is(wire.Text(leaf))
		return all
	})
	return all
}

// flat reports whether a value is no more than a text, a number or the like, or a list of these.
func flat(v json.RawMessage) bool {
	deep, is := 0, true
	wire.EachToken(v, func(token wire.Token, text, _ json.RawMessage) bool {
		if token == wire.TokenOpen {
			deep++
			is = deep == 1 && text[0] == '['
		}
		return is
	})
	return is
}

// here reports whether all texts of a value name files of this machine.
func here(v json.RawMessage) bool {
	return eachText(v, func(text string) bool {
		_, known := local(text)
		return known
	})
}

// writes reports whether a call that is said to look at something gives its tool what a file
// would hold: then it is judged as a change of that file (PER-1).
func (t told) writes() bool {
	if t.Kind != "read" && t.Kind != "search" {
		return false
	}
	file, text := slices.ContainsFunc(t.Paths, func(p string) bool { return p != "" }), false
	t.each(func(key string, v json.RawMessage) {
		const longest = 100
		if !says(v) || len(key) > longest {
			return
		}
		name := plain(key)
		file = file || speaksOf(name, ofFiles)
		text = text || slices.Contains(written, name)
	})
	return file && text
}

// blank reports whether nothing but a call's name and kind was told.
func (t told) blank() bool {
	return len(t.Paths) == 0 && len(t.Diffs) == 0 && !says(t.Input) && t.Text == "" && slices.Contains([]string{"", "read", "search", "think"}, t.Kind)
}
