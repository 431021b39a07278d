package handlers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// showStream: GET /sessions/:id/stream?after=SEQ. Each entry is a message with
// its row; the last one of those that were there at once carries the parts of
// the page that changed with them.
func (s *Server) showStream(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	after, err := cursor(c)
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	return s.follow(c, id, after, rowFeed{s, viewerOf(c)})
}

// rowFeed gives entries as a page shows them, from one snapshot at a time (RDR-1).
type rowFeed struct {
	s      *Server
	viewer components.Viewer
}

func (r rowFeed) read(ctx context.Context, f *store.Follower, after int64) ([]streamMessage, int64, error) {
	snap, err := f.Page(ctx, after, streamPage)
	if err != nil || len(snap.Events) == 0 {
		return nil, snap.Session.LastSeq, err
	}
	out, err := r.s.rowMessages(ctx, r.viewer, &snap)
	return out, snap.Session.LastSeq, err
}

// latest gives nothing: beside a row stands what only a snapshot knows.
func (rowFeed) latest(*store.Follower, int64) ([]streamMessage, int64, bool, error) {
	return nil, 0, false, nil
}

func (s *Server) rowMessages(ctx context.Context, v components.Viewer, snap *store.SessionPage) ([]streamMessage, error) {
	ctx = s.masking(components.DrawnFor(ctx, v.ID), v.ID)
	entries := components.Entries(windowOf(snap, v))
	out := make([]streamMessage, 0, len(entries))
	for i, e := range entries {
		html, err := drawn(ctx, components.JournalRow(e, snap.Session.Now)) //nolint:contextcheck // a component gets the context when it is drawn
		if err != nil {
			return nil, err
		}
		if i == len(entries)-1 {
			parts, err := s.changedParts(ctx, v, snap)
			if err != nil {
				return nil, err
			}
			html += parts
		}
		out = append(out, streamMessage{e.Seq, framed(e.Seq, "row", html)})
	}
	return out, nil
}

// changedParts are those parts of the page that change with the entries of a snapshot.
func (s *Server) changedParts(ctx context.Context, v components.Viewer, snap *store.SessionPage) (string, error) {
	var outputs string
	rows := []templ.Component{components.LiveOutputs(liveOutputs(snap)), components.CallWhats(callWhats(snap), snap.Session.Now), components.DraftNotes(draftNotes(snap))} //nolint:contextcheck // a component gets the context when it is drawn
	for _, c := range rows {
		html, err := drawn(ctx, c)
		if err != nil {
			return "", err
		}
		outputs += html
	}
	if onlyPieces(snap.Events) { // no part but the rows that show them changes with them
		return outputs, nil
	}
	p, err := s.sessionModel(ctx, v, snap, 0)
	if err != nil {
		return "", err
	}
	parts, err := drawn(ctx, pages.SessionParts(p))
	return outputs + parts, err
}

// liveOutputs are the boxes of the calls that these entries are about: filled
// while a call runs, emptied when it has ended.
func liveOutputs(snap *store.SessionPage) []components.LiveOutput {
	var out []components.LiveOutput
	for id, c := range snap.Calls {
		out = append(out, components.NewLiveOutput(c, endsOf(snap.Outputs[id])))
	}
	return out
}

// callWhats are the calls that these entries say more of.
func callWhats(snap *store.SessionPage) []components.CallWhat {
	var out []components.CallWhat
	said := map[string]bool{}
	for i := range snap.Events {
		if kind := snap.Events[i].Kind; kind != journal.KindCallDescribed && kind != journal.KindCallContradicted {
			continue
		}
		body, err := snap.Events[i].Decode()
		id := journal.CallOf(body)
		_, stays := snap.Before[id] // it says something else than what was asked
		if c := snap.Calls[id]; err == nil && c != nil && !said[id] && !stays {
			said[id] = true
			out = append(out, components.NewCallWhat(c))
		}
	}
	return out
}

// draftNotes say of messages that aren't complete whether something of them may
// come. That changes with an attempt or a turn alone.
func draftNotes(snap *store.SessionPage) []components.DraftNote {
	if !slices.ContainsFunc(snap.Events, func(ev journal.Event) bool {
		return ev.Kind == journal.KindAttemptUnknown || ev.Kind == journal.KindTurnEnded
	}) {
		return nil
	}
	var out []components.DraftNote
	for _, w := range snap.Writing {
		out = append(out, components.NewDraftNote(w.Message, w.Part, w.CutOff))
	}
	return out
}

func onlyPieces(evs []journal.Event) bool {
	for i := range evs {
		switch evs[i].Kind {
		case journal.KindCallOutput, journal.KindMessageDelta, journal.KindCallDescribed:
		default:
			return false
		}
	}
	return true
}

// drawn is a component as HTML.
func drawn(ctx context.Context, c templ.Component) (string, error) {
	var b strings.Builder
	if err := c.Render(ctx, &b); err != nil {
		return "", fmt.Errorf("draw a part of a page: %w", err)
	}
	markup, _ := components.MaskPage(ctx, []byte(b.String()))
	return string(markup), nil
}
