package handlers

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/store"
)

// exportFunc writes a whole session of an owner.
type exportFunc func(ctx context.Context, w io.Writer, st *store.Store, ownerID, id string) error

// apiExport: GET /api/v1/sessions/{id}/export, and export.json of its page.
func (s *Server) apiExport(c *fiber.Ctx) error {
	return s.sendExport(c, "json", fiber.MIMEApplicationJSON, ExportJSON)
}

// exportMarkdown: GET /sessions/:id/export.md.
func (s *Server) exportMarkdown(c *fiber.Ctx) error {
	return s.sendExport(c, "md", "text/markdown; charset=utf-8", ExportMarkdown)
}

// sendExport answers with a file that is written as it is read, so a failure in
// its midst can only show as an answer that ends too early.
func (s *Server) sendExport(c *fiber.Ctx, ext, contentType string, export exportFunc) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	ownerID := current(c).User.ID
	if _, _, err := s.store.Head(c.UserContext(), ownerID, id); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, contentType)
	c.Set(fiber.HeaderContentDisposition, `attachment; filename="`+id+`.`+ext+`"`)
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
		err := export(ctx, rolling{w, func() error { return s.extend(conn) }}, s.store, ownerID, id)
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
