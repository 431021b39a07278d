package components

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

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
	for _, key := range textKeys {
		if text, ok := members[key].(string); ok && text != "" {
			p.Text, p.Known = text, true
			delete(members, key)
			break
		}
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if value := factValue(members[key]); value != "" {
			p.Facts = append(p.Facts, Fact{factName(key), value})
		}
	}
	return p
}

// CallPayload is what a call would do.
func CallPayload(c *journal.Call) Payload {
	if c == nil {
		return Payload{}
	}
	p := NewPayload(c.Input)
	if !p.Known {
		var buf bytes.Buffer
		if json.Indent(&buf, c.Input, "", "  ") != nil {
			return Payload{}
		}
		return Payload{Text: buf.String(), Known: true}
	}
	return p
}

// RequestPayload is what a request asks for: its metadata, and the call's input
// where that says more. call may be nil.
func RequestPayload(r *journal.Request, call *journal.Call) Payload {
	p := NewPayload(r.Metadata)
	if p.Known {
		return p
	}
	from := CallPayload(call)
	from.Facts = append(from.Facts, p.Facts...)
	return from
}

func factName(key string) string {
	name := strings.ReplaceAll(key, "_", " ")
	if name == "" {
		return "Value"
	}
	return strings.ToUpper(name[:1]) + name[1:]
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
	lines, size, hides = Lines(p.Text), len(p.Text), Hides(p.Text)
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

// Row reports whether the whole payload fits into a row of a table.
func (p Payload) Row() bool {
	_, size, _ := p.size()
	return p.Short() && Lines(p.Text) == 1 && size <= rowBytes
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
	if t := Line(p.Text, 120); t != "" {
		return t
	}
	return "a call"
}

// asks says in words what a permission is about.
func asks(permission string) string {
	switch permission {
	case "shell":
		return "run this command"
	case "edit":
		return "write to a file"
	case "read":
		return "read a file that is guarded"
	case "web":
		return "reach the web"
	case "mcp":
		return "use a tool of another server"
	case "external_directory":
		return "reach outside its workspace"
	case "loop":
		return "do the same thing again, for the third time in a row"
	}
	return "do something that needs the permission " + Line(permission, 40)
}
