package components

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
)

// agentCall is what an agent has told of a call of its own: the call's input.
type agentCall struct {
	Title string   `json:"title"`
	Kind  string   `json:"kind"`
	Paths []string `json:"paths"`
	Diffs []struct {
		Path string  `json:"path"`
		Old  *string `json:"old"`
		New  string  `json:"new"`
	} `json:"diffs"`
	Text  string          `json:"text"` // what it shows before it runs
	Input json.RawMessage `json:"input"`
}

// ranBy are the members of an agent's input that say what would be run, in the order in
// which they are looked for: a text, or a list of words.
var ranBy = []string{"command", "script", "statement"}

// agentPayload reads the input of an agent's own call: the command of one that runs
// something, the change of one that edits, else what the agent calls it. Every member of
// the input is the text, a fact, or said by the change. ok is false for an input of
// another form.
func agentPayload(raw json.RawMessage, seen []seenFile) (p Payload, ok bool) {
	var told agentCall
	if json.Unmarshal(raw, &told) != nil || told.Title == "" && told.Kind == "" {
		return Payload{}, false
	}
	p = Payload{Known: true, Agents: true, Tool: told.Kind}
	members, isObject := agentMembers(told.Input)
	runs := takeText(members, ranBy)
	if !isObject && told.Kind == "execute" {
		runs = commandOf(told.Input)
	}
	if !isObject && len(told.Input) > 0 && told.Kind != "execute" {
		p.Said = append(p.Said, Fact{"rawInput", string(told.Input)})
	}
	untold := ""
	if runs == "" && len(told.Diffs) == 0 {
		untold = told.takeUntold(members)
	}
	if len(told.Diffs) > 0 {
		p.takeDiffs(&told, members, seen)
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if value := factValue(members[key]); value != "" {
			p.Said = append(p.Said, Fact{cmp.Or(key, `""`), value})
		}
	}
	switch title := told.Title; {
	case p.Diff != nil && runs != "":
		p.Runs, p.Name = runs, Line(runs, 120)+", and "+lowerFirst(p.Name)
		p.takeTitle(title)
	case p.Diff != nil:
	case runs != "":
		p.Text = runs
		if title != runs {
			p.takeTitle(title)
		}
	case untold != "":
		p.Text, p.Name = untold, untoldName(&told, untold)
		p.takeTitle(title)
	default:
		p.Text, p.titled, p.title = cmp.Or(title, told.Kind), true, title
		p.Name = Line(p.Text, 160)
		if changes(told.Kind) && len(told.Paths) > 0 {
			p.takeFiles(told.Paths, told.Kind, title)
		}
		if told.Text != "" {
			p.Text, told.Text = p.Text+"\n\n"+told.Text, ""
		}
	}
	if told.Text != "" && !slices.ContainsFunc(p.Facts, func(f Fact) bool { return f.Value == told.Text }) {
		p.Facts = append(p.Facts, Fact{"The agent shows", told.Text})
	}
	p.takePaths(&told)
	p.more = runs == "" || len(p.Said) > 0
	return p, true
}

// takeUntold takes what a call would run that its input tells in no form that is known: its
// title must not stand there instead. "": there is nothing of that kind.
func (told *agentCall) takeUntold(members map[string]any) string {
	all := told.Kind == "execute"
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if value := factValue(members[key]); value != "" && (all || policy.SaysWhatRuns(key)) {
			lines = append(lines, key+": "+value)
			delete(members, key)
		}
	}
	if all && len(lines) == 0 && !slices.Contains([]string{"", "null", "{}", "[]", `""`}, string(told.Input)) {
		return string(told.Input)
	}
	return strings.Join(lines, "\n")
}

// untoldName names such a call in one line. What an agent calls a command isn't its name;
// of another tool it says which it is.
func untoldName(told *agentCall, untold string) string {
	if told.Kind != "execute" && told.Title != "" {
		untold = Line(told.Title, 60) + " " + untold
	}
	return Line(untold, 160)
}

// takeTitle takes what the agent calls it, unless a member of the input says the same.
func (p *Payload) takeTitle(title string) {
	if title != "" && !slices.ContainsFunc(p.Said, func(f Fact) bool { return f.Value == title }) {
		p.Said = append(p.Said, Fact{"title", title})
	}
}

// agentMembers are the members of an agent's input, with numbers as they were written.
func agentMembers(raw json.RawMessage) (members map[string]any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return members, d.Decode(&members) == nil && members != nil
}

// commandOf is the command that an input of no object is, or "".
func commandOf(raw json.RawMessage) string {
	var given any
	if json.Unmarshal(raw, &given) != nil {
		return ""
	}
	return policy.CommandOf(given)
}

// takeText takes the first text, or list of words, that there is out of the members.
func takeText(members map[string]any, keys []string) string {
	for _, key := range keys {
		if text := policy.CommandOf(members[key]); text != "" {
			delete(members, key)
			return text
		}
	}
	return ""
}

func lowerFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// takeDiffs makes the change what is read, its files the name, and takes the members that
// it says too.
func (p *Payload) takeDiffs(told *agentCall, members map[string]any, seen []seenFile) {
	d := &Diff{}
	for _, one := range told.Diffs {
		d.Files = append(d.Files, fileDiff(one.Path, one.Old, one.New, seenOf(seen, one.Path)))
	}
	p.Diff, p.Text = d, diffText(d.Files)
	p.Files = filesInALine(diffPaths(d.Files))
	p.Name = verbOf(told.Kind) + " " + p.Files
	for _, key := range newSaid(told).take(members) {
		delete(members, key)
		p.Raw = indented(told.Input)
	}
}

// takePaths names the files that nothing else names.
func (p *Payload) takePaths(told *agentCall) {
	text := p.Runs
	if p.Diff == nil {
		text = p.Text
	}
	if files := missing(told.Paths, p.Said, p.Diff, text); len(files) > 0 {
		p.Said = append(p.Said, Fact{"locations", strings.Join(files, "\n")})
	}
}

// indented is JSON for people to read.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func verbOf(kind string) string {
	switch kind {
	case "delete":
		return "Delete"
	case "move":
		return "Move"
	}
	return "Edit"
}

// filesInALine names files for a title: the first, and how many more there are.
func filesInALine(paths []string) string {
	first := Line(paths[0], 160)
	if len(paths) == 1 {
		return first
	}
	return first + " and " + Plural(len(paths)-1, "more file")
}

// changes reports whether a tool of this kind changes files.
func changes(kind string) bool { return slices.Contains([]string{"edit", "delete", "move"}, kind) }

// takeFiles says which files a change is about, in place of what the agent calls it.
func (p *Payload) takeFiles(files []string, kind, title string) {
	rest := strings.TrimPrefix(p.Text, title)
	if title == "" { // the text is the kind
		rest = strings.TrimPrefix(p.Text, kind)
	}
	p.Name = verbOf(kind) + " " + filesInALine(files)
	p.Text, p.titled = verbOf(kind)+" "+strings.Join(files, "\n")+rest, false
	p.takeTitle(title)
}

// nameFiles names an agent's change by what it reaches, as it was judged.
func (p *Payload) nameFiles(r *journal.Request) {
	reached := slices.DeleteFunc(slices.Clone(r.Resources), func(one string) bool { return strings.TrimSpace(one) == "" })
	if !p.Agents || !changes(p.Tool) || len(reached) == 0 || r.Permission != "edit" && r.Permission != "external_directory" {
		return
	}
	switch {
	case p.Name == "" || p.Name == p.Runs: // a request's own metadata: a command, or what the agent calls it
		p.Name = verbOf(p.Tool) + " " + filesInALine(reached)
		if p.Diff == nil && p.Text != "" {
			p.Text = verbOf(p.Tool) + " " + strings.Join(reached, "\n") + "\n\nIn the agent’s words: " + p.Text
		}
	case p.titled:
		p.takeFiles(reached, p.Tool, p.title)
	}
}

// missing are the paths that neither a fact nor a change names, nor a word of what is
// shown: a path that begins like another one is another file.
func missing(paths []string, facts []Fact, d *Diff, text string) (out []string) {
	known := map[string]bool{"": true}
	for _, word := range strings.Fields(text) {
		known[word] = true
	}
	if d != nil {
		for _, f := range d.Files {
			known[f.Path] = true
		}
	}
	for _, f := range facts {
		known[f.Value] = true
	}
	for _, path := range paths {
		if !known[path] {
			known[path] = true
			out = append(out, path)
		}
	}
	return out
}

// callPayloadOf reads the input of a call.
func callPayloadOf(c *journal.Call, seen []seenFile) (Payload, bool) {
	if c.AttemptID == "" {
		return Payload{}, false
	}
	return agentPayload(c.Input, seen)
}

// seenOf is what was seen of a file; nil: nobody has asked about it.
func seenOf(seen []seenFile, path string) *seenFile {
	if seen == nil {
		return nil
	}
	for i := range seen {
		if seen[i].Path == path {
			return &seen[i]
		}
	}
	return &seenFile{Path: path, State: "unknown"}
}
