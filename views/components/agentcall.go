package components

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"holdfast/journal"
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
	Input json.RawMessage `json:"input"`
}

// repeated are members of an agent's input that its diffs say too.
var repeated = []string{"content", "oldString", "newString", "old_string", "new_string", "old_str", "new_str", "diff", "patch", "edits", "filePath", "file_path", "path"}

// agentPayload reads the input of an agent's own call: the command of one that runs
// something, the change of one that edits, else what the agent calls it. ok is
// false for an input of another form.
func agentPayload(raw json.RawMessage) (p Payload, ok bool) {
	var told agentCall
	if json.Unmarshal(raw, &told) != nil || told.Title == "" && told.Kind == "" {
		return Payload{}, false
	}
	p = NewPayload(told.Input)
	p.Known, p.Agents, p.Tool = true, true, told.Kind
	if len(told.Input) > 0 && !isObject(told.Input) {
		p.Facts = append(p.Facts, Fact{"Input", string(told.Input)})
	}
	switch {
	case len(told.Diffs) > 0:
		p.takeDiffs(&told)
	case told.Kind == "execute" && p.Text != "":
		if title := told.Title; title != "" && title != p.Text {
			p.Facts = append(p.Facts, Fact{"The agent calls it", title})
		}
	default:
		if p.Text != "" { // of an input that isn't a command
			p.Facts = append(p.Facts, Fact{"Text", p.Text})
		}
		p.Text, p.Name = told.Title, Line(told.Title, 160)
		if p.Text == "" {
			p.Text, p.Name = told.Kind, told.Kind
		}
		if files := missing(told.Paths, p.Facts, told.Title); len(files) > 0 {
			p.Facts = append(p.Facts, Fact{"Files", strings.Join(files, "\n")})
		}
	}
	return p, true
}

func isObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// takeDiffs makes the change what is read, and its files the name.
func (p *Payload) takeDiffs(told *agentCall) {
	d := &Diff{}
	for _, one := range told.Diffs {
		d.Files = append(d.Files, fileDiff(one.Path, one.Old, one.New))
	}
	p.Diff, p.Text = d, diffText(d.Files)
	p.Files = filesInALine(diffPaths(d.Files))
	p.Name = verbOf(told.Kind) + " " + p.Files
	var kept []Fact
	for _, f := range p.Facts {
		if !slices.ContainsFunc(repeated, func(key string) bool { return newFact(key, "x").Name == f.Name }) {
			kept = append(kept, f)
		}
	}
	if len(kept) < len(p.Facts) || len(told.Input) > 0 && len(p.Facts) == 0 {
		p.Raw = indented(told.Input)
	}
	p.Facts = kept
	if others := missing(told.Paths, nil, p.Text); len(others) > 0 {
		p.Facts = append(p.Facts, Fact{"Other files", strings.Join(others, "\n")})
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

// missing are the paths that neither a fact nor a text holds.
func missing(paths []string, facts []Fact, text string) (out []string) {
	for _, path := range paths {
		known := strings.Contains(text, path) || slices.Contains(out, path) || slices.ContainsFunc(facts, func(f Fact) bool { return f.Value == path })
		if !known && path != "" {
			out = append(out, path)
		}
	}
	return out
}

// callPayloadOf reads the input of a call.
func callPayloadOf(c *journal.Call) (Payload, bool) {
	if c.AttemptID == "" {
		return Payload{}, false
	}
	return agentPayload(c.Input)
}
