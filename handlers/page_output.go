package handlers

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"holdfast/store"
	"holdfast/views/pages"
)

// outputPage is how much of an output one page shows, in bytes.
const outputPage = 64 << 10

// showOutput: GET /calls/:id/output?offset=, or all of it with ?download=1.
func (s *Server) showOutput(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "call")
	if err != nil {
		return err
	}
	offset, err := queryInt(c, "offset", 0)
	if err != nil {
		return err
	}
	call, err := s.store.Call(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	if c.Query("download") == "1" {
		return s.downloadOutput(c, id)
	}
	out, err := s.store.CallOutput(c.UserContext(), current(c).User.ID, id, offset, outputPage)
	if err != nil {
		return err
	}
	one, err := s.store.Session(c.UserContext(), current(c).User.ID, call.SessionID)
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Output", "sessions", one.Now)
	if err != nil {
		return err
	}
	p := pages.CallOutput{Frame: f, S: sessionView(&one, f.Viewer), Call: call, Offset: offset, Total: out.Total}
	p.Binary = !isText(out.Data)
	data := wholeRunes(out.Data)
	if p.Text, err = s.maskedPiece(c, id, offset, string(data), out.Next-int64(len(out.Data)-len(data))); err != nil {
		return err
	}
	if next := out.Next - int64(len(out.Data)-len(data)); next < out.Total {
		p.Next = next
	}
	return draw(c, http.StatusOK, pages.CallOutputPage(p))
}

// maskedPiece is a piece of a call's output without the owner's secrets, also those
// that reach over its edges. next is where the following piece begins.
func (s *Server) maskedPiece(c *fiber.Ctx, id string, offset int64, piece string, next int64) (string, error) {
	ctx, ownerID := c.UserContext(), current(c).User.ID
	clean := s.store.Cleaner(ownerID)
	n := clean.Longest()
	if n == 0 {
		return piece, nil
	}
	var before string
	if from := max(0, offset-int64(n)); from < offset {
		out, err := s.store.CallOutput(ctx, ownerID, id, from, int(offset-from))
		if err != nil {
			return "", err
		}
		before = string(out.Data)
	}
	after, err := s.store.CallOutput(ctx, ownerID, id, next, n)
	return clean.Piece(before, piece, string(after.Data)), err
}

// wholeRunes leaves out a character that the end has cut; the next page begins with it.
func wholeRunes(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n < len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-n]
			}
			break
		}
	}
	return b
}

// downloadOutput answers with all of a call's output as a file, written as it is
// read. A failure in its midst can only show as an answer that ends too early.
func (s *Server) downloadOutput(c *fiber.Ctx, id string) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextPlainCharsetUTF8)
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+id+`.txt"`)
	if c.Method() == fiber.MethodHead {
		return nil
	}
	// Nothing of c may be used in the writer: it runs after this handler has returned.
	id = strings.Clone(id)
	ctx, conn, request, ownerID := context.WithoutCancel(c.UserContext()), c.Context().Conn(), requestID(c), current(c).User.ID
	c.Context().SetConnectionClose()
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("download panicked", slog.String("request_id", request), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			}
		}()
		masked := s.store.Cleaner(ownerID).Writer(rolling{w, func() error { return s.extend(conn) }})
		err := writeOutput(ctx, masked, s.store, ownerID, id)
		if err == nil {
			err = masked.Close()
		}
		if err == nil {
			return
		}
		s.log.Warn("download ended early", slog.String("request_id", request), slog.String("call_id", id), slog.Any("error", err))
		// Without its last chunk the answer can't be taken for a whole one.
		if err := conn.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			s.log.Debug("cut the download's connection", slog.Any("error", err))
		}
	})
	return nil
}

// writeOutput writes what a call has put out so far, piece by piece.
func writeOutput(ctx context.Context, w io.Writer, st *store.Store, ownerID, id string) error {
	for offset := int64(0); ; {
		out, err := st.CallOutput(ctx, ownerID, id, offset, outputMax)
		if err != nil {
			return err
		}
		if len(out.Data) == 0 {
			return nil
		}
		if _, err := w.Write(out.Data); err != nil {
			return err
		}
		offset = out.Next
	}
}
