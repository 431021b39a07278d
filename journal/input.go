package journal

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// Inputter is a body with the input of a call, which is a value of any form: a long one
// lies in a blob, and a reference stands in its place.
type Inputter interface {
	Body
	CallInput() (input json.RawMessage, sha256 string)
	WithInput(json.RawMessage) Body // a copy with another input
}

// CallInput is the input, and the digest of what it was proposed as.
func (b *CallProposed) CallInput() (json.RawMessage, string) { return b.Input, b.InputSHA256 }

// CallInput is the input, and the digest of what was described.
func (b *CallDescribed) CallInput() (json.RawMessage, string) { return b.Input, b.InputSHA256 }

// CallInput is the input, and the digest of what was described.
func (b *CallContradicted) CallInput() (json.RawMessage, string) { return b.Input, b.InputSHA256 }

// WithInput is a copy with another input.
func (b *CallProposed) WithInput(in json.RawMessage) Body { c := *b; c.Input = in; return &c }

// WithInput is a copy with another input.
func (b *CallDescribed) WithInput(in json.RawMessage) Body { c := *b; c.Input = in; return &c }

// WithInput is a copy with another input.
func (b *CallContradicted) WithInput(in json.RawMessage) Body { c := *b; c.Input = in; return &c }

var hexSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// InputBlob tells which blob the input of a call lies in; false: the input is whole as
// it stands. sha256 is the digest that the call has of it: a tool may take an input that
// looks like a reference, and that one has its own digest. "" is none at hand.
func InputBlob(input json.RawMessage, sha256 string) (Text, bool) {
	if len(input) > 200 || len(input) == 0 || input[0] != '{' {
		return Text{}, false
	}
	var ref blobRef
	d := json.NewDecoder(bytes.NewReader(input))
	d.DisallowUnknownFields()
	if d.Decode(&ref) != nil || !hexSum.MatchString(ref.Blob) || ref.Bytes <= 0 || sha256 != "" && Hash(string(input)) == sha256 {
		return Text{}, false
	}
	return Text{Blob: ref.Blob, Bytes: ref.Bytes}, true
}

// ReadInput reads the input of a call. False: it has another form, or isn't whole, which
// must not be taken for an input that says nothing.
func ReadInput(input json.RawMessage, v any) bool {
	if _, elsewhere := InputBlob(input, ""); elsewhere {
		return false
	}
	return json.Unmarshal(input, v) == nil
}

// Blobs gives the references to blobs that a body holds: every one, of any kind that
// this build knows.
func Blobs(b Body) []Text {
	var out []Text
	if t, ok := b.(Texter); ok {
		for _, text := range t.Texts() {
			if text.Blob != "" {
				out = append(out, *text)
			}
		}
	}
	if in, ok := b.(Inputter); ok {
		if ref, elsewhere := InputBlob(in.CallInput()); elsewhere {
			out = append(out, ref)
		}
	}
	return out
}
