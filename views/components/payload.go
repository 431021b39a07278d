package components

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/journal"
)

// Bounds of what can be answered without a page of its own (ux §5.4, §5.5).
const (
	cardLines = 60
	cardBytes = 8 << 10
	rowBytes  = 120
)

// Fact is a name with what it says.
type Fact struct{ Name, Value string }

// Payload is all of what a call would do, for people to read.
type Payload struct {
	Text  string // what would be run
	Facts []Fact // the rest
	Known bool   // false: what is at hand isn't the whole, so it can't be answered here
	// Warned: a fact stands beside it that must be read first.
	Warned bool

	// Of an agent's own call.
	Agents bool
	Tool   string // its kind: edit, execute, …
	Name   string // of it in one line; "": the text is the name
	Files  string // that a change is about, in one line
	Diff   *Diff  // Text is this change
	Raw    string // what the agent gave its tool, where the change says it better
}

// textKeys hold the thing itself, in the order in which they are looked for.
var textKeys = []string{"command", "script", "diff", "statement", "content"}

// NewPayload reads a call's input, or a request's metadata.
func NewPayload(raw json.RawMessage) Payload {
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil || len(members) == 0 {
		return Payload{}
	}
	var p Payload
	p.Tool, _ = members["tool"].(string)
	p.takeChange(members)
	for _, key := range textKeys {
		if text, ok := members[key].(string); ok && text != "" {
			p.Text, p.Known = text, true
			delete(members, key)
			break
		}
	}
	// Metadata says how long the command is, since a long one is cut there.
	if n, ok := members["command_bytes"].(float64); ok && int(n) != len(p.Text) {
		p.Known = false
	}
	if p.Diff != nil { // what the command says is the agent's name of it, and the change may be shortened
		p.Text, p.Name, p.Known = diffText(p.Diff.Files), p.Text, false
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if f := newFact(key, members[key]); f.Value != "" {
			p.Facts = append(p.Facts, f)
		}
		p.Warned = p.Warned || warns(key, members[key])
	}
	return p
}

// takeChange takes the change that a request's metadata shows beside its command.
func (p *Payload) takeChange(members map[string]any) {
	text, _ := members["diff"].(string)
	if _, asks := members["command_bytes"]; !asks || text == "" {
		return
	}
	if files := parseDiff(text); files != nil {
		p.Diff = &Diff{Files: files, Part: true}
		p.Files = filesInALine(diffPaths(files))
		delete(members, "diff")
	}
}

// CallPayload is what a call would do.
func CallPayload(c *journal.Call) Payload {
	if c == nil {
		return Payload{}
	}
	if p, ok := callPayloadOf(c); ok {
		return p
	}
	p := NewPayload(c.Input)
	if p.Text == "" {
		if !json.Valid(c.Input) {
			return Payload{}
		}
		return Payload{Text: indented(c.Input), Known: true}
	}
	return p
}

// RequestPayload is what a request asks for: the call's input where it is at
// hand, since that is what would be run, with the facts of the request; else
// what the request itself says. call may be nil.
func RequestPayload(r *journal.Request, call *journal.Call) Payload {
	p := NewPayload(r.Metadata)
	p.Facts = slices.DeleteFunc(p.Facts, func(f Fact) bool { return f.Name == "Ask" }) // a number that tells an agent's requests apart
	from := CallPayload(call)
	if !from.Known {
		return p
	}
	for _, f := range p.Facts {
		if !slices.ContainsFunc(from.Facts, func(g Fact) bool { return g.Name == f.Name }) {
			from.Facts = append(from.Facts, f)
		}
	}
	from.Warned = p.Warned
	return from
}

// warns tells the members that a person must read before the buttons.
func warns(key string, v any) bool {
	yes, ok := v.(bool)
	return ok && yes && (key == "same_as_unknown" || key == "always_asks")
}

// newFact says a member of an input or of metadata in words; no value: it says nothing.
func newFact(key string, v any) Fact {
	switch key {
	case "command_bytes", "tool":
		return Fact{}
	case "directory":
		return Fact{"Runs in", factValue(v)}
	case "runs_as":
		return Fact{"Runs as", factValue(v)}
	case "timeout_s":
		return Fact{"Ended after", factValue(v) + " s, if it runs that long"}
	case "effect":
		return Fact{"Effect", effectText(journal.ParseEffect(factValue(v)))}
	case "always_asks":
		return Fact{"Why you are asked", onlyIf(v, "It is always asked, whatever the rules say.")}
	case "same_as_unknown":
		return Fact{"Take care", onlyIf(v, "The same call was started before, and what became of it was not recorded. If it had happened, this would be the second time.")}
	}
	name := strings.ReplaceAll(key, "_", " ")
	if name == "" {
		name = "value"
	}
	first, size := utf8.DecodeRuneInString(name)
	return Fact{string(unicode.ToUpper(first)) + name[size:], factValue(v)}
}

func onlyIf(v any, text string) string {
	if yes, ok := v.(bool); ok && yes {
		return text
	}
	return ""
}

func factValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, factValue(one))
		}
		return strings.Join(parts, "\n")
	}
	b, err := journal.Encode(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// size counts the lines and bytes of all of it, and whether any of it hides.
func (p Payload) size() (lines, size int, hides bool) {
	lines, size, hides = Lines(p.Text), len(p.Text)+len(p.Raw), Hides(p.Text+p.Name+p.Raw)
	for _, f := range p.Facts {
		lines += Lines(f.Value)
		size += len(f.Value)
		hides = hides || Hides(f.Name+f.Value)
	}
	return lines, size, hides
}

// Short reports whether a card may show the whole payload with its buttons
// (R7). A long one, or one with characters that hide, is answered on its own page.
func (p Payload) Short() bool {
	lines, size, hides := p.size()
	return p.Known && lines <= cardLines && size <= cardBytes && !hides
}

// Row reports whether the payload can be read, and so answered, in a row of a table.
func (p Payload) Row() bool {
	return p.Short() && !p.Warned && p.Diff == nil && Lines(p.Text) == 1 && len(p.Text) <= rowBytes
}

// Hidden reports whether the payload holds characters that act or can't be seen.
func (p Payload) Hidden() bool {
	_, _, hides := p.size()
	return hides
}

// First is the beginning of the payload, for a card that can't show all of it.
func (p Payload) First() string {
	lines := strings.SplitAfterN(p.Text, "\n", 9)
	return strings.TrimSuffix(journal.Cut(strings.Join(lines[:min(len(lines), 8)], ""), 1000), "\n")
}

// Title is the payload in one line.
func (p Payload) Title() string {
	if p.Name != "" {
		return Line(p.Name, 160)
	}
	if t := Line(p.Text, 120); t != "" {
		return t
	}
	return "a call"
}

// asks says in words what a permission is about.
// tool is the kind of an agent's call, or "".
func asks(permission, tool string) string {
	switch permission {
	case "shell":
		return "run this command"
	case "edit":
		switch tool {
		case "delete":
			return "delete a file"
		case "move":
			return "move a file"
		}
		return "write to a file"
	case "read":
		return "read a file that is guarded"
	case "web":
		return "reach the web"
	case "mcp":
		return "use a tool"
	case "external_directory":
		return "reach outside its workspace"
	case "loop":
		return "do the same thing again, for the third time in a row"
	}
	return "do something that needs the permission " + Line(permission, 40)
}
