package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Bounds of the journal's rows (JRN-6), in bytes.
const (
	MaxEventBody = 64 << 10 // an encoded body
	MaxField     = 32 << 10 // a text that stays inside its body; a longer one becomes a blob
)

// Kind names what an event says. A kind is never renamed; its data only gains members.
type Kind string

// ActorType says who caused an event.
type ActorType string

// The types of actor.
const (
	ActorUser   ActorType = "user"
	ActorAgent  ActorType = "agent"
	ActorServer ActorType = "server"
)

// Actor is who caused an event; ID is the user's, or empty.
type Actor struct {
	Type ActorType
	ID   string
}

// User is a person, by id.
func User(id string) Actor { return Actor{Type: ActorUser, ID: id} }

// Agent is the agent of the session.
func Agent() Actor { return Actor{Type: ActorAgent} }

// Server is Holdfast itself.
func Server() Actor { return Actor{Type: ActorServer} }

type actorJSON struct {
	Type ActorType `json:"type"`
	ID   *string   `json:"id"`
}

// MarshalJSON writes {"type", "id"}, with null for no id.
func (a Actor) MarshalJSON() ([]byte, error) {
	return json.Marshal(actorJSON{a.Type, OrNil(a.ID)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Actor) UnmarshalJSON(b []byte) error {
	var j actorJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	a.Type = j.Type
	a.ID = deref(j.ID)
	return nil
}

// OrNil gives nil for the empty string: what is null in JSON and SQL.
func OrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// Event is one row of the journal. It is never changed (JRN-1).
type Event struct {
	ID          string
	SessionID   string
	Seq         int64
	Kind        Kind
	Version     int
	Time        int64 // Unix milliseconds, by the database's clock
	Actor       Actor
	ExecutionID string          // empty: not of a run
	Data        json.RawMessage // as written
}

// Body is the data of an event as a Go value. There is one type for each kind.
type Body interface{ Kind() Kind }

// Draft is an event that isn't in the journal yet. Its id is chosen by who
// makes it, so that an append which is repeated after an unknown commit is
// found, not doubled (COO-10).
type Draft struct {
	ID    string
	Actor Actor
	Body  Body
}

// Decode gives the body of an event, or an Opaque one if this build doesn't
// know its kind or version (JRN-7). An error means that a known body is damaged.
func (e *Event) Decode() (Body, error) {
	mk, ok := bodies[e.Kind]
	if !ok || e.Version != 1 {
		return &Opaque{Of: e.Kind, Raw: e.Data}, nil
	}
	b := mk()
	if err := json.Unmarshal(e.Data, b); err != nil {
		return nil, fmt.Errorf("decode %s #%d of %s: %w", e.Kind, e.Seq, e.SessionID, err)
	}
	return b, nil
}

// Opaque is the body of an event that this build doesn't know.
type Opaque struct {
	Of  Kind
	Raw json.RawMessage
}

// Kind gives the unknown kind.
func (o *Opaque) Kind() Kind { return o.Of }

// Encode writes a value as the journal stores it: no HTML escaping, no final newline.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// Text is a text of an event: inline, or by reference to a blob of the journal
// once it is over MaxField.
type Text struct {
	S     string
	Blob  string // SHA-256, hex; empty: inline
	Bytes int64  // the blob's size
	Raw   bool   // S isn't text: it is kept byte for byte in a blob, masked only (JRN-6)
}

// T makes an inline text.
func T(s string) Text { return Text{S: s} }

// Long reports whether a text must become a blob: what isn't text, and what is
// too long. The bound is on its encoded bytes, since a text of quotes or escape
// sequences grows up to six times (JRN-6).
func (t Text) Long() bool {
	if t.Raw || len(t.S) > MaxField {
		return true
	}
	if 6*len(t.S)+2 <= MaxField {
		return false
	}
	b, err := Encode(t.S)
	return err != nil || len(b) > MaxField
}

type blobRef struct {
	Blob  string `json:"blob"`
	Bytes int64  `json:"bytes"`
}

// MarshalJSON writes a string, or {"blob", "bytes"}.
func (t Text) MarshalJSON() ([]byte, error) {
	if t.Blob != "" {
		return Encode(blobRef{t.Blob, t.Bytes})
	}
	return Encode(t.S)
}

// UnmarshalJSON reads both forms.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var r blobRef
		if err := json.Unmarshal(b, &r); err != nil {
			return err
		}
		*t = Text{Blob: r.Blob, Bytes: r.Bytes}
		return nil
	}
	*t = Text{}
	return json.Unmarshal(b, &t.S)
}

// Texter is a body with texts that may become blobs.
type Texter interface{ Texts() []*Text }
