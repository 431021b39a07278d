package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"holdfast/runner/acp/wire"
)

// script is what the agent is and does; doc.go tells the words.
type script struct {
	Capabilities    json.RawMessage            `json:"capabilities"`
	AuthMethods     json.RawMessage            `json:"auth_methods"`
	ProtocolVersion int                        `json:"protocol_version"`
	Session         map[string]json.RawMessage `json:"session"`
	Answers         map[string]answer          `json:"answers"`
	NeedsEnv        string                     `json:"needs_env"`
	Opened          []step                     `json:"opened"`
	Prompts         []prompt                   `json:"prompts"`
	OnCancel        onCancel                   `json:"on_cancel"`
	OnEOF           string                     `json:"on_eof"`

	can wire.AgentCapabilities // Capabilities, read
}

// answer is a fixed one, or says how long the usual one takes.
type answer struct {
	Result    json.RawMessage `json:"result"`
	Error     *wire.Error     `json:"error"`
	Hang      bool            `json:"hang"`
	Crash     bool            `json:"crash"`
	AfterFile string          `json:"after_file"`
}

// prompt is what is done for one.
type prompt struct {
	Match    string    `json:"match"`
	Times    int       `json:"times"`
	OnCancel *onCancel `json:"on_cancel"`
	Steps    []step    `json:"steps"`
}

const eofIgnore = "ignore"

// onCancel is a mode, or the file to wait for.
type onCancel struct{ mode, file string }

const (
	cancelAnswer   = "answer"
	cancelComplete = "complete"
	cancelIgnore   = "ignore"
	cancelFile     = "after_file"
)

func (o *onCancel) UnmarshalJSON(raw []byte) error {
	if raw[0] == '{' {
		o.mode = cancelFile
		return strictly(raw, &struct {
			AfterFile *string `json:"after_file"`
		}{&o.file})
	}
	if err := json.Unmarshal(raw, &o.mode); err != nil {
		return err
	}
	if !slices.Contains([]string{cancelAnswer, cancelComplete, cancelIgnore}, o.mode) {
		return fmt.Errorf("on_cancel: %q is no mode", o.mode)
	}
	return nil
}

// step is one action: a word of the table kinds, its argument, and what goes with it.
type step struct {
	word string
	arg  json.RawMessage

	steps     []step
	thenOn    map[string][]step
	meanwhile []step
	tool      json.RawMessage
	usage     json.RawMessage
}

func (s *step) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for name := range members {
		if _, ok := kinds[name]; ok && s.word == "" {
			s.word, s.arg = name, members[name]
		} else if ok {
			return fmt.Errorf("a step has two words, %s and %s", s.word, name)
		}
	}
	kind, ok := kinds[s.word]
	if !ok {
		return fmt.Errorf("a step has no word that is known: %s", raw)
	}
	if err := kind.check(s.arg); err != nil {
		return fmt.Errorf("step %s: %w", s.word, err)
	}
	delete(members, s.word)
	for name, value := range members {
		if !slices.Contains(kind.with, name) {
			return fmt.Errorf("step %s: %s doesn't go with it", s.word, name)
		}
		if err := s.with(name, value); err != nil {
			return fmt.Errorf("step %s: %s: %w", s.word, name, err)
		}
	}
	return nil
}

// with reads what goes with a step.
func (s *step) with(name string, value json.RawMessage) error {
	switch name {
	case "steps":
		return json.Unmarshal(value, &s.steps)
	case "meanwhile":
		return json.Unmarshal(value, &s.meanwhile)
	case "tool":
		s.tool = value
		return nil
	case "usage":
		s.usage = value
		return nil
	case "then_on":
		return s.branches(value)
	default:
		return fmt.Errorf("no such word")
	}
}

// branches are the steps by a permission's answer.
func (s *step) branches(value json.RawMessage) error {
	if err := json.Unmarshal(value, &s.thenOn); err != nil {
		return err
	}
	for outcome := range s.thenOn {
		if outcome != onAllow && outcome != onReject && outcome != onCancelled {
			return fmt.Errorf("%q is none of allow, reject, cancelled", outcome)
		}
	}
	return nil
}

const (
	onAllow     = "allow"
	onReject    = "reject"
	onCancelled = "cancelled"
)

const (
	defaultScript       = `{"prompts":[{"steps":[{"say":"You said: {{prompt}}"}]}]}`
	defaultCapabilities = `{"loadSession":true,"sessionCapabilities":{"resume":{},"close":{}}}`
)

// loadScript reads and checks a script; "" is the default one.
func loadScript(path string) (*script, error) {
	text := []byte(defaultScript)
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	s := &script{
		Capabilities: json.RawMessage(defaultCapabilities), AuthMethods: json.RawMessage("[]"), ProtocolVersion: wire.ProtocolVersion,
		OnCancel: onCancel{mode: cancelAnswer}, OnEOF: "exit",
	}
	err := strictly(text, s)
	if err == nil {
		s.can, err = wire.Decode[wire.AgentCapabilities](s.Capabilities)
	}
	if err == nil && s.OnEOF != "exit" && s.OnEOF != eofIgnore {
		err = fmt.Errorf("on_eof: %q is neither exit nor ignore", s.OnEOF)
	}
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", path, err)
	}
	return s, nil
}

// strictly decodes what has no member that isn't known.
func strictly(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// entryFor is the prompt's entry, taken once more.
func (s *script) entryFor(text string, kept *state) prompt {
	for i, p := range s.Prompts {
		if strings.Contains(text, p.Match) && kept.take(i, p.Times) {
			return p
		}
	}
	return prompt{}
}
