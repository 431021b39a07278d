package handlers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"unicode/utf8"

	"holdfast/journal"
	"holdfast/store"
)

// ExportJSON writes the whole session of an owner as one JSON object, in pages:
// {session, events, blobs, calls, permissions, journal_sha256}, all as of the
// session's last_seq. Blobs are the texts that events refer to by their hash;
// the last member is the SHA-256 of the bytes of the array events, brackets
// included. Code: not_found.
func ExportJSON(ctx context.Context, w io.Writer, st *store.Store, ownerID, id string) error {
	walk, err := newWalk(ctx, st, ownerID, id)
	if err != nil {
		return err
	}
	e := &exporter{w: bufio.NewWriter(w), walk: walk, blobs: map[string]bool{}}
	e.text(`{"session":`)
	e.value(newSessionJSON(&walk.one))
	e.text(`,"events":`)
	sum := sha256.New()
	if err := walk.writeEvents(ctx, io.MultiWriter(e.w, sum), e.note); err != nil {
		return err
	}
	if err := e.blobTexts(ctx); err != nil {
		return err
	}
	e.begin("calls")
	if err := walk.calls(ctx, func(c *journal.Call) error { return e.item(newCallJSON(c)) }); err != nil {
		return err
	}
	e.text("]")
	e.begin("permissions")
	if err := walk.requests(ctx, func(r *journal.Request) error { return e.item(newRequestJSON(r)) }); err != nil {
		return err
	}
	e.text(`],"journal_sha256":"` + hex.EncodeToString(sum.Sum(nil)) + "\"}\n")
	return errors.Join(e.err, e.w.Flush())
}

// exporter writes JSON piece by piece. Its first error stays, and ends the export.
type exporter struct {
	w     *bufio.Writer
	walk  *walk
	order []string // of blobs
	blobs map[string]bool
	comma bool
	err   error
}

func (e *exporter) text(s string) {
	if e.err == nil {
		_, e.err = e.w.WriteString(s)
	}
}

func (e *exporter) value(v any) {
	b, err := maskedJSON(e.walk.clean(), v)
	if e.err == nil {
		e.err = err
	}
	e.text(string(b))
}

func (e *exporter) begin(member string) {
	e.text(`,"` + member + `":[`)
	e.comma = false
}

func (e *exporter) item(v any) error {
	if e.comma {
		e.text(",\n")
	}
	e.comma = true
	e.value(v)
	return e.err
}

// note remembers the blobs that an event refers to.
func (e *exporter) note(ev *journal.Event) {
	body, err := ev.Decode()
	if err != nil {
		return
	}
	for _, t := range journal.Blobs(body) {
		if !e.blobs[t.Blob] {
			e.blobs[t.Blob] = true
			e.order = append(e.order, t.Blob)
		}
	}
}

type blobJSON struct {
	SHA256 string  `json:"sha256"`
	Bytes  int     `json:"bytes"`
	Text   *string `json:"text"`
	Base64 []byte  `json:"base64,omitempty"` // instead of text, where it isn't UTF-8
}

func (e *exporter) blobTexts(ctx context.Context) error {
	e.begin("blobs")
	for _, sum := range e.order {
		if e.err != nil { // nobody takes it any more
			break
		}
		data, err := e.walk.st.Blob(ctx, e.walk.owner, e.walk.one.ID, sum)
		if err != nil {
			return err
		}
		b := blobJSON{SHA256: sum, Bytes: len(data)} // of what is in the journal
		data = []byte(e.walk.clean().Bytes(string(data)))
		if text := string(data); utf8.ValidString(text) {
			b.Text = &text
		} else {
			b.Base64 = data
		}
		if err := e.item(b); err != nil {
			return err
		}
	}
	e.text("]")
	return e.err
}
