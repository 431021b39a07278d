package components

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/journal"
	"holdfast/journal/policy"
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
	// Said is what an agent gave its tool besides, each under the name that it wrote: it
	// may be any, also one of the server's own words.
	Said  []Fact
	Known bool // false: what is at hand isn't the whole, so it can't be answered here
	// Warned: a fact stands beside it that must be read first.
	Warned bool

	Again string    // of a request: why it is asked once more
	Names [2]string // what its agent calls the answers that allow and deny it; "": what they are

	beside []string // names of facts that only say how it would run

	// Changed: its call was described anew since it was asked, so that only what the
	// request itself says is what was asked.
	Changed bool

	// Of an agent's own call.
	Agents bool
	Tool   string // its kind: edit, execute, …
	Name   string // of it in one line; "": the text is the name
	more   bool   // the text isn't all that the agent told, or is the agent's name of it
	title  string // what the agent calls it
	titled bool   // the text begins with what the agent calls it, which may say anything
	Files  string // that a change is about, in one line
	Diff   *Diff  // Text is this change
	Runs   string // beside the change: what would be run
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
		p.Runs, p.Name = p.Text, p.Text
		p.Text, p.Known = diffText(p.Diff.Files), false
	}
	_, agents := members["ask"]
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if f := newFact(key, members[key], agents); f.Value != "" {
			p.Facts = append(p.Facts, f)
		}
		p.Warned = p.Warned || warns(key, members[key])
	}
	if f := newWhyAsked(members); f.Value != "" {
		p.Facts = append(p.Facts, f)
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
		var asked askedAs
		if raw, err := journal.Encode(members); err == nil {
			_ = json.Unmarshal(raw, &asked) // what isn't there is empty
		}
		for i := range files {
			files[i].see(asked.Seen)
		}
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
	return callPayload(c, nil)
}

// callPayload is what a call would do, to files of which some were seen.
func callPayload(c *journal.Call, seen []seenFile) Payload {
	if ref, elsewhere := journal.InputBlob(c.Input, c.InputSHA256); elsewhere {
		size := Bytes(ref.Bytes)
		return Payload{Name: "(an input of " + size + ", not at hand here)", Text: "What it would do is said in " + size + " of input, which are not at hand here."}
	}
	if p, ok := callPayloadOf(c, seen); ok {
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
	var asked askedAs
	_ = json.Unmarshal(r.Metadata, &asked) // what isn't there is empty
	p := NewPayload(r.Metadata)
	p.beside = []string{ofEffect, "Host", runsAs}
	p.Agents = asked.Ask != 0
	p.Again, p.Names = asked.Again, [2]string{asked.OnceIs, asked.RejectIs}
	p.Known = p.Known && (!p.Agents || asked.Whole)
	p.Changed = call != nil && !asked.of(r, call)
	from := Payload{}
	if call != nil {
		from = callPayload(call, append([]seenFile{}, asked.Seen...))
	}
	p.nameFiles(r)
	if !from.Known || p.Changed {
		if p.Diff == nil {
			p.Facts = append(p.Facts, filesNow(asked.Seen)...)
		}
		return p
	}
	if !from.Agents {
		from.beside = []string{"Shell", "Ended after"}
	}
	for _, f := range p.Facts {
		if !slices.Contains(from.Facts, f) { // what the server says is never left out for what a call calls the same
			from.Facts = append(from.Facts, f)
		}
	}
	if from.Diff == nil {
		from.Facts = append(from.Facts, filesNow(asked.Seen)...)
	}
	from.beside = append(from.beside, p.beside...)
	from.nameFiles(r)
	from.Warned, from.Again, from.Names = p.Warned, p.Again, p.Names
	return from
}

// filesNow say whether the files were there, when it was asked, that a call would write
// without saying what changes.
func filesNow(seen []seenFile) (out []Fact) {
	for _, f := range seen {
		says := f.Path + ": not known whether it exists"
		switch f.State {
		case "exists":
			says = f.Path + " exists, " + Bytes(f.Bytes)
		case "new":
			says = f.Path + " does not exist yet"
		}
		out = append(out, Fact{"The file now", says})
	}
	return out
}

// askedAs is what a request's metadata says of itself.
type askedAs struct {
	Ask         int64      `json:"ask"`   // of an agent's own call: which of its requests it is
	Whole       bool       `json:"whole"` // the command is all that the agent told
	InputSHA256 string     `json:"input_sha256"`
	Seen        []seenFile `json:"seen"`
	Again       string     `json:"asked_again"`
	OnceIs      string     `json:"once_is"`
	RejectIs    string     `json:"reject_is"`
}

// of reports whether what is known of a call is what was asked. An older request doesn't
// say of which input it is: what an agent was allowed by one may have changed since.
func (a askedAs) of(r *journal.Request, call *journal.Call) bool {
	if a.InputSHA256 == "" {
		return call.AttemptID == "" || r.State == journal.RequestPending
	}
	return a.InputSHA256 == call.InputSHA256
}

// warns tells the members that a person must read before the buttons.
func warns(key string, v any) bool {
	yes, ok := v.(bool)
	return ok && yes && (key == "same_as_unknown" || key == "always_asks")
}

// The facts that warn.
const (
	takeCare = "Take care"
	whyAsked = "Why you are asked"
)

// Facts that the server says.
const (
	runsIn   = "Runs in"
	runsAs   = "Runs as"
	ofEffect = "Effect"
)

// newFact says a member of an input or of metadata in words, of an agent's own call or not;
// no value: it says nothing.
func newFact(key string, v any, agents bool) Fact {
	switch key {
	case "command_bytes", "tool", "ask", "whole", "input_sha256", "seen", "always_asks", "asks_why", "asked_again", "once_is", "reject_is":
		return Fact{}
	case "directory":
		return Fact{runsIn, factValue(v)}
	case "runs_as":
		return Fact{runsAs, factValue(v)}
	case "timeout_s":
		return Fact{"Ended after", factValue(v) + " s, if it runs that long"}
	case "effect":
		return Fact{ofEffect, effectText(journal.ParseEffect(factValue(v)), agents)}
	case "same_as_unknown":
		return Fact{takeCare, onlyIf(v, "The same call was started before, and its outcome was lost. If it had happened, this would be the second time.")}
	}
	return Fact{factName(key), factValue(v)}
}

// newWhyAsked says why a request is asked although rules may allow it. An older request
// doesn't tell the reasons.
func newWhyAsked(members map[string]any) Fact {
	always, _ := members["always_asks"].(bool)
	var reasons []string
	if told, _ := members["asks_why"].([]any); told != nil {
		for _, one := range told {
			if reason, _ := one.(string); reason != "" {
				reasons = append(reasons, reason)
			}
		}
	}
	since := Curly(strings.Join(reasons, "; "))
	switch {
	case always && since != "":
		return Fact{whyAsked, "It is always asked, whatever the rules say: " + since + "."}
	case always:
		return Fact{whyAsked, "It is always asked, whatever the rules say."}
	case since != "":
		return Fact{whyAsked, "The permissions of this session do not allow it by themselves: " + since + "."}
	}
	return Fact{}
}

// factName is a member's name for people.
func factName(key string) string {
	name := strings.ReplaceAll(key, "_", " ")
	if name == "" {
		name = "value"
	}
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
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
	lines, size, hides = Lines(p.Text)+Lines(p.Runs), len(p.Text)+len(p.Runs)+len(p.Raw), HidesExact(p.Text+p.Runs+p.Name+p.Raw)
	for _, f := range slices.Concat(p.Facts, p.Said) {
		lines += Lines(f.Value)
		size += len(f.Name) + len(f.Value)
		hides = hides || HidesExact(f.Name+f.Value)
	}
	return lines, size, hides
}

// all counts the lines and bytes of all that the agent told.
func (p Payload) all() (lines, size int) {
	lines, size = Lines(p.Text)+Lines(p.Runs), len(p.Text)+len(p.Runs)
	for _, f := range p.Said {
		lines, size = lines+Lines(f.Value), size+len(f.Value)
	}
	return lines, size
}

// Short reports whether a card may show the whole payload with its buttons
// (R7). A long one, or one with characters that hide, is answered on its own page.
func (p Payload) Short() bool {
	lines, size, hides := p.size()
	return p.Known && lines <= cardLines && size <= cardBytes && !hides && !p.Diff.cutsLines()
}

// Row reports whether the payload can be read, and so answered, in a row of a table.
func (p Payload) Row() bool {
	return p.Short() && !p.Warned && p.Again == "" && p.Names == [2]string{} && !p.more && p.Diff == nil && Lines(p.Text) == 1 && len(p.Text) <= rowBytes
}

// Hidden reports whether the payload holds characters that act or can't be seen.
func (p Payload) Hidden() bool {
	_, _, hides := p.size()
	return hides
}

// First is the beginning of the payload, for a card that can't show all of it.
func (p Payload) First() string { return firstOf(p.Text) }

func firstOf(text string) string {
	lines := strings.SplitAfterN(text, "\n", 9)
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

// asks says in words what a permission is about, by what was judged.
// tool is the kind of an agent's call, or "".
func asks(permission, tool string, resources []string) string {
	switch permission {
	case "shell":
		return "run this command"
	case "edit":
		switch tool {
		case "delete":
			return "delete a file or a folder"
		case "move":
			return "move a file or a folder"
		}
		return "write to a file"
	case "read":
		if slices.ContainsFunc(resources, guarded) {
			return "read a file that is guarded"
		}
		return "read a file"
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

// guarded reports whether the presets that let files be read ask before this one.
func guarded(file string) bool {
	return policy.Evaluate(policy.AskWrites, nil, []policy.Resource{{Permission: policy.PermissionRead, Value: file}}).Action != policy.Allow
}
