package model

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Word is one line of a prompt.
type Word struct{ What, Arg string }

func (w Word) isTool() bool { return w.What == "RUN" || w.What == "EDIT" }

var wordLine = regexp.MustCompile(`(?m)^(SAY|WAIT|RUN|EDIT)\((.*)\)$`)

// request is what an agent asks.
type request struct {
	model    string
	stream   bool
	messages []message
	tools    map[string][]string // the names of what each takes
}

// message is a part of the conversation. Results of tools come from user.
type message struct {
	role   string
	blocks []block
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

const toolResult = "tool_result"

// blocks reads content that is a text or a list.
func blocks(content json.RawMessage) []block {
	var text string
	var out []block
	if json.Unmarshal(content, &text) == nil {
		return []block{{"text", text}}
	}
	_ = json.Unmarshal(content, &out) // what can't be read says nothing
	return out
}

// call finds the newest prompt in a request, and how much of it has been done. What
// agents add for themselves, and messages of another role, is no prompt.
func (q *request) call(taught map[string]string) Call {
	c := Call{Aside: len(q.tools) == 0}
	var all strings.Builder
	for _, m := range q.messages {
		if m.role != "user" {
			fmt.Fprintf(&all, "%s\n", m.role)
			continue
		}
		for _, b := range m.blocks {
			fmt.Fprintf(&all, "%s %s\n", b.Type, b.Text)
			switch {
			case b.Type == toolResult:
				c.Step++
			case b.Type == "text" && !strings.HasPrefix(b.Text, "<system-reminder>"):
				c.Step = 0 // agents put several prompts into one message
				c.Words = wordsOf(taught, b.Text)
			}
		}
	}
	c.Conversation = sum([]byte(all.String()))
	return c
}

// wordsOf reads a prompt, or what was taught of it.
func wordsOf(taught map[string]string, prompt string) (out []Word) {
	for about, script := range taught {
		if strings.Contains(prompt, about) {
			prompt = script
		}
	}
	for _, found := range wordLine.FindAllStringSubmatch(prompt, -1) {
		out = append(out, Word{found[1], lineBreaks.Replace(found[2])})
	}
	return out
}

var lineBreaks = strings.NewReplacer(`\n`, "\n", `\t`, "\t")

// now gives the words of this step: up to the next tool.
func (c *Call) now() []Word {
	words := c.Words
	if len(words) == 0 {
		return []Word{{"SAY", Unasked}}
	}
	for range c.Step {
		if i := slices.IndexFunc(words, Word.isTool); i >= 0 {
			words = words[i+1:]
		} else {
			words = nil
		}
	}
	if i := slices.IndexFunc(words, Word.isTool); i >= 0 {
		words = words[:i+1]
	}
	return words
}

// calls gives a tool of the agent, by the names that this agent has for it and for
// what it takes.
func (q *request) calls(w Word) (name, input string) {
	name, with := "Bash", map[string]string{"command": w.Arg, "description": "Run it"}
	if w.What == "EDIT" {
		path, text, _ := strings.Cut(w.Arg, ", ")
		name, with = "Write", map[string]string{"content": text}
		for _, key := range []string{"file_path", "filePath"} {
			if q.takes(name, key) {
				with[key] = path
			}
		}
	}
	for t := range q.tools {
		if strings.EqualFold(t, name) {
			name = t
		}
	}
	return name, text(with)
}

func (q *request) takes(tool, key string) bool {
	for name, keys := range q.tools {
		if strings.EqualFold(name, tool) {
			return slices.Contains(keys, key)
		}
	}
	return false
}

// schema is what a tool takes.
type schema struct {
	Properties map[string]any `json:"properties"`
}

func (s schema) keys() []string {
	var out []string
	for key := range s.Properties {
		out = append(out, key)
	}
	return out
}
