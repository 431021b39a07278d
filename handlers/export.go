package handlers

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

// apiExport: GET /api/v1/sessions/{id}/export. It is written as it is read, so a
// failure in its midst can only show as an answer that ends too early.
func (s *Server) apiExport(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	ownerID := current(c).User.ID
	if _, _, err := s.store.Head(c.UserContext(), ownerID, id); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+id+`.json"`)
	if c.Method() == fiber.MethodHead {
		return nil
	}
	id = strings.Clone(id)
	// Nothing of c may be used in the writer: it runs after this handler has returned.
	ctx, conn, request := context.WithoutCancel(c.UserContext()), c.Context().Conn(), requestID(c)
	c.Context().SetConnectionClose()
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("export panicked", slog.String("request_id", request), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			}
		}()
		err := ExportJSON(ctx, rolling{w, func() error { return s.extend(conn) }}, s.store, ownerID, id)
		if err == nil {
			return
		}
		s.log.Warn("export ended early", slog.String("request_id", request), slog.String("session_id", id), slog.Any("error", err))
		// Without its last chunk the answer can't be taken for a whole one.
		if err := conn.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			s.log.Debug("cut the export's connection", slog.Any("error", err))
		}
	})
	return nil
}

// rolling gives each write its own time, as streams have it.
type rolling struct {
	w      io.Writer
	extend func() error
}

func (r rolling) Write(b []byte) (int, error) {
	if err := r.extend(); err != nil {
		return 0, err
	}
	return r.w.Write(b)
}

// ExportJSON writes the whole session of an owner as one JSON object, in pages:
// {session, events, blobs, calls, permissions}. Events are those up to the
// session's last_seq. Blobs are the texts that events refer to by their hash.
// Code: not_found.
func ExportJSON(ctx context.Context, w io.Writer, st *store.Store, ownerID, id string) error {
	one, err := st.Session(ctx, ownerID, id)
	if err != nil {
		return err
	}
	e := &exporter{w: bufio.NewWriter(w), st: st, owner: ownerID, id: id, blobs: map[string]bool{}}
	e.text(`{"session":`)
	e.value(newSessionJSON(&one))
	if err := e.events(ctx, one.LastSeq); err != nil {
		return err
	}
	if err := e.blobTexts(ctx); err != nil {
		return err
	}
	e.begin("calls")
	if err := eachCall(ctx, st, ownerID, id, func(call *journal.Call) { e.item(newCallJSON(call)) }); err != nil {
		return err
	}
	e.text("]")
	if err := e.permissions(ctx); err != nil {
		return err
	}
	e.text("}\n")
	return errors.Join(e.err, e.w.Flush())
}

// exporter writes JSON piece by piece. Its first error stays, and ends the export.
type exporter struct {
	w     *bufio.Writer
	st    *store.Store
	owner string
	id    string
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
	b, err := journal.Encode(v)
	if e.err == nil {
		e.err = err
	}
	e.text(string(b))
}

func (e *exporter) begin(member string) {
	e.text(`,"` + member + `":[`)
	e.comma = false
}

func (e *exporter) item(v any) {
	if e.comma {
		e.text(",\n")
	}
	e.comma = true
	e.value(v)
}

func (e *exporter) events(ctx context.Context, last int64) error {
	e.begin("events")
	for after := int64(0); after < last && e.err == nil; {
		p, err := e.st.EventsAfter(ctx, e.owner, e.id, after, int(min(streamPage, last-after)))
		if err != nil {
			return err
		}
		for i := range p.Events {
			e.item(newEventJSON(&p.Events[i]))
			e.note(&p.Events[i])
			after = p.Events[i].Seq
		}
	}
	e.text("]")
	return e.err
}

// note remembers the blobs that an event refers to.
func (e *exporter) note(ev *journal.Event) {
	body, err := ev.Decode()
	texter, ok := body.(journal.Texter)
	if err != nil || !ok {
		return
	}
	for _, t := range texter.Texts() {
		if t.Blob != "" && !e.blobs[t.Blob] {
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
		data, err := e.st.Blob(ctx, e.owner, e.id, sum)
		if err != nil {
			return err
		}
		b := blobJSON{SHA256: sum, Bytes: len(data)}
		if text := string(data); utf8.ValidString(text) {
			b.Text = &text
		} else {
			b.Base64 = data
		}
		e.item(b)
	}
	e.text("]")
	return e.err
}

func (e *exporter) permissions(ctx context.Context) error {
	e.begin("permissions")
	for q := (store.RequestQuery{Session: e.id, Limit: 100}); e.err == nil; {
		list, next, err := e.st.Requests(ctx, e.owner, q)
		if err != nil {
			return err
		}
		for _, r := range list {
			e.item(newRequestJSON(r))
		}
		if next == "" {
			break
		}
		q.Cursor = next
	}
	e.text("]")
	return e.err
}
