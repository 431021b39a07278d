package acp

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"holdfast/runner"
)

// What acts elsewhere, does more, or means something else by the same words, is something
// else than what was let run.
//
// proves CAL-9
func TestTold_CoversNothingElse(t *testing.T) {
	t.Parallel()
	in := func(kind, s string) told { return told{Title: "T", Kind: kind, Input: json.RawMessage(s)} }
	titled := func(kind, title string) told { return told{Title: title, Kind: kind} }
	at := func(kind string, paths ...string) told { return told{Title: "T", Kind: kind, Paths: paths} }
	changed := func(path, old, now string) told {
		return told{Title: "T", Kind: "edit", Diffs: []diff{{Path: path, Old: &old, New: now}}}
	}
	run := in("execute", `{"command":"rm -rf /w/build/tmp"}`)
	for name, c := range map[string]struct {
		was, now told
		want     bool
	}{
		"a folder above":           {in("delete", `{"path":"/w/build/tmp"}`), in("delete", `{"path":"/w"}`), false},
		"the root":                 {in("delete", `{"path":"/w/build/tmp"}`), in("delete", `{"path":"/"}`), false},
		"the end of its name":      {in("delete", `{"path":"/w/build/tmp"}`), in("delete", `{"path":"tmp"}`), false},
		"told from the workspace":  {in("delete", `{"path":"/w/build/tmp"}`), in("delete", `{"path":"./build//tmp/"}`), true},
		"as an address":            {in("delete", `{"path":"/w/build/tmp"}`), in("delete", `{"uri":"file:///w/build/tmp"}`), true},
		"places above":             {at("delete", "/w/build/tmp"), at("delete", "/w"), false},
		"places more":              {at("delete", "/w/a"), at("delete", "/w/a", "/w/b"), false},
		"places less":              {at("delete", "/w/a", "/w/b"), at("delete", "b"), true},
		"a place of its command":   {run, told{Title: "T", Kind: "execute", Paths: []string{"/w/build/tmp"}, Input: run.Input}, true},
		"where it was judged":      {in("execute", `{"command":"ls"}`), told{Title: "T", Kind: "execute", Paths: []string{"/w"}, Input: json.RawMessage(`{"command":"ls","cwd":"/w","description":"List","timeout":5}`)}, true},
		"in another folder then":   {in("execute", `{"command":"ls","cwd":"/w/a"}`), in("execute", `{"command":"ls","cwd":"/w"}`), false},
		"in a folder at last":      {in("execute", `{"command":"ls"}`), in("execute", `{"command":"ls","cwd":"/w/a"}`), false},
		"a place above it":         {run, told{Title: "T", Kind: "execute", Paths: []string{"/w/build"}, Input: run.Input}, false},
		"the root of its command":  {in("execute", `{"command":"ls / ."}`), told{Title: "T", Kind: "execute", Paths: []string{"/"}}, false},
		"read, then deleted":       {in("read", `{"path":"a"}`), in("delete", `{"path":"a"}`), false},
		"read, then edited":        {in("read", `{"path":"a"}`), in("edit", `{"path":"a"}`), false},
		"read, then run":           {in("read", `{"path":"a"}`), in("execute", `{"path":"a"}`), false},
		"read, then fetched":       {in("read", `{"path":"a"}`), in("fetch", `{"path":"a"}`), false},
		"edited, then moved":       {in("edit", `{"path":"a"}`), in("move", `{"path":"a"}`), false},
		"moved, then deleted":      {at("move", "a", "b"), at("delete", "a", "b"), false},
		"nothing, then deleted":    {in("", `{"path":"a"}`), in("delete", `{"path":"a"}`), false},
		"read, then searched":      {in("read", `{"path":"a"}`), in("search", `{"path":"a"}`), true},
		"edited, then read":        {in("edit", `{"path":"a"}`), in("read", `{"path":"a"}`), true},
		"other, but its command":   {in("other", `{"command":"ls"}`), in("execute", `{"command":"ls"}`), true},
		"other, but its change":    {told{Title: "T", Diffs: changed("a", "x", "y").Diffs}, changed("a", "x", "y"), true},
		"the other way around":     {in("move", `{"source":"/w/a","destination":"/w/b"}`), in("move", `{"source":"/w/b","destination":"/w/a"}`), false},
		"around, by other names":   {in("move", `{"source":"/w/a","destination":"/w/b"}`), in("move", `{"from":"/w/b","to":"/w/a"}`), false},
		"by names of nobody":       {in("move", `{"source":"/w/a","destination":"/w/b"}`), in("move", `{"x":"/w/b","y":"/w/a"}`), false},
		"the same by other names":  {in("move", `{"source":"/w/a","destination":"/w/b"}`), in("move", `{"from":"a","to":"b"}`), true},
		"content as a path":        {in("edit", `{"path":"/w/a","content":"/w/b"}`), in("edit", `{"path":"/w/b"}`), false},
		"a remark as a path":       {in("delete", `{"description":"/w/b","path":"/w/a"}`), in("delete", `{"file_path":"/w/b"}`), false},
		"a change around":          {in("edit", `{"path":"a","old_string":"x","new_string":"y"}`), in("edit", `{"path":"a","old_string":"y","new_string":"x"}`), false},
		"and by other names":       {in("edit", `{"path":"a","old_string":"x","new_string":"y"}`), in("edit", `{"path":"a","oldText":"y","newText":"x"}`), false},
		"deep in it":               {in("edit", `{"edits":[{"oldText":"x","newText":"y"}]}`), in("edit", `{"edits":[{"oldText":"y","newText":"x"}]}`), false},
		"less of it":               {in("edit", `{"edits":[{"oldText":"x","newText":"y"},{"oldText":"q","newText":"z"}]}`), in("edit", `{"edits":[{"new_text":"z","old_text":"q"}]}`), true},
		"a shown change around":    {changed("a", "x\n", "y\n"), changed("a", "y\n", "x\n"), false},
		"a change of another file": {told{Kind: "edit", Diffs: append(changed("a", "x", "y").Diffs, changed("b", "q", "z").Diffs...)}, told{Kind: "edit", Diffs: changed("a", "q", "z").Diffs}, false},
		"another title":            {titled("execute", "ls"), titled("execute", "rm -rf /"), false},
		"a part of a title":        {titled("execute", "git push --force origin main"), titled("execute", "git push"), false},
		"another title, untold":    {in("execute", `{"description":"x"}`), told{Title: "rm -rf /", Kind: "execute", Input: json.RawMessage(`{"description":"x"}`)}, false},
		"a title in backticks":     {titled("execute", "`ls`"), titled("execute", "ls"), true},
		"the tool's name, at first": {
			told{Title: "bash", Kind: "execute", Input: json.RawMessage(`{"command":"ls"}`)},
			told{Title: "List files", Kind: "execute", Input: json.RawMessage(`{"command":"ls"}`)},
			true,
		},

		"a title of what is known": {in("read", `{"filePath":"/w/a.go"}`), told{Title: "a.go", Kind: "read", Input: json.RawMessage(`{"filePath":"/w/a.go"}`)}, true},
		"another pattern":          {in("search", `{"pattern":"src","path":"docs"}`), in("search", `{"pattern":"docs","path":"src"}`), false},
		"one of a list":            {in("delete", `{"paths":["/w/a","/w/b"]}`), in("delete", `{"path":"b"}`), true},
		"one more of a list":       {in("delete", `{"paths":["/w/a"]}`), in("delete", `{"paths":["/w/a","/w/b"]}`), false},
	} {
		if got := c.was.covers(&c.now, "/w"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A description that says less, or the same in another form, is covered; one that says
// more isn't.
//
// proves CAL-9
func TestTold_Covers(t *testing.T) {
	t.Parallel()
	in := func(s string) told { return told{Title: "A", Input: json.RawMessage(s)} }
	old := "a\nb\nc"
	was := told{
		Title: "Edit x.go and run", Paths: []string{"/w/x.go"}, Diffs: []diff{{Path: "/w/x.go", Old: &old, New: "a\nB\nc"}},
		Input: json.RawMessage(`{"command":"make","deep":[[{"x":["one text",12,true]}]],"old_string":"b","new_string":"B"}`),
	}
	for name, c := range map[string]struct {
		now  told
		want bool
	}{
		"nothing":            {told{}, true},
		"itself":             {was, true},
		"in another order":   {in(`{"b":true,"x":12,"a":"one text"}`), true},
		"texts of it":        {in(`["one text",12]`), true},
		"a part of a text":   {in(`["one"]`), false},
		"the name of a file": {in(`{"file":"x.go"}`), true},
		"another text":       {in(`{"a":"two texts"}`), false},
		"over two texts":     {in(`{"a":"makeone text"}`), false},
		"a NUL":              {in(`{"a":"x.go and run\u0000/w/x.go"}`), false},
		"another number":     {in(`[13]`), false},
		"what says nothing":  {in(`[false,null,"",{},[],{"command":""}]`), true},
		"the command":        {in(`{"command":"make"}`), true},
		"a part of it":       {in(`{"command":"mak"}`), false},
		"under another name": {in(`{"cmd":"make"}`), false},
		"a name of a member": {in(`{"anything":"make"}`), true},
		"another file":       {told{Paths: []string{"/w/y.go"}}, false},
		"lines around":       {told{Diffs: []diff{{Path: "/w/x.go", Old: ptr("q\nb\nz"), New: "q\nB\nz"}}}, true},
		"more in its line":   {told{Diffs: []diff{{Path: "/w/x.go", Old: ptr("q\nxx b yy\nz"), New: "q\nxx B yy\nz"}}}, true},
		"another line":       {told{Diffs: []diff{{Path: "/w/x.go", Old: ptr("q\nb\nz"), New: "q\nnew\nz"}}}, false},
		"a new file":         {told{Diffs: []diff{{Path: "/w/x.go", New: "a\nB"}}}, true},
	} {
		if got := was.covers(&c.now, "/w"); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func ptr(s string) *string { return &s }

// A change is shown as it is line by line.
func TestUnified(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := func() string {
			var b strings.Builder
			for range r.IntN(8) {
				b.WriteString([]string{"a", "b", "ab", "", "ba"}[r.IntN(5)])
				b.WriteString([]string{"\n", "\n", "\n", ""}[r.IntN(4)])
			}
			return b.String()
		}
		d := diff{Path: "f", New: text()}
		if r.IntN(5) > 0 {
			d.Old = ptr(text())
		}
		if got, want := unified(d, ""), byLines(d); got != want {
			t.Fatalf("%v to %q:\n%s\nwant\n%s", d.Old, d.New, got, want)
		}
	}
}

// unified is how a change is shown.
func unified(d diff, ws string) string {
	var b strings.Builder
	d.overSeen(&b, runner.SeenFile{State: runner.SeenNew}, ws)
	return b.String()
}

// byLines is unified as one would write it for short texts.
func byLines(d diff) string {
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	}
	out, before, after := "--- /dev/null\n+++ f\n", []string(nil), split(d.New)
	if !d.whole() {
		out, before = "--- f\n+++ f\n", split(*d.Old)
	}
	if len(before) > 0 && len(after) > 0 {
		const open = "\n\\ No newline at end of file"
		switch was, is := strings.HasSuffix(*d.Old, "\n"), strings.HasSuffix(d.New, "\n"); {
		case was && !is:
			after[len(after)-1] += open
		case is && !was:
			before[len(before)-1] += open
		}
	}
	var same, rest []string
	for len(before) > 0 && len(after) > 0 && before[0] == after[0] {
		same, before, after = append(same, before[0]), before[1:], after[1:]
	}
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		rest, before, after = append(rest, before[len(before)-1]), before[:len(before)-1], after[:len(after)-1]
	}
	slices.Reverse(rest)
	for _, part := range []struct {
		mark  string
		lines []string
	}{{"  ", same[max(0, len(same)-3):]}, {"- ", before}, {"+ ", after}, {"  ", rest[:min(3, len(rest))]}} {
		for _, l := range part.lines {
			out += fmt.Sprintln(part.mark + l)
		}
	}
	return out
}
