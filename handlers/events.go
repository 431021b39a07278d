package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
)

// answerBytes bounds the data of one answer of events; a page that would be
// larger is shorter than was asked for, and says that there is more.
const answerBytes = 8 << 20

// apiEvents: GET /api/v1/sessions/{id}/events, as JSON, as a long poll or as a
// stream. The larger of ?after and Last-Event-ID is where it goes on (RDR-2).
func (s *Server) apiEvents(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	after, err := cursor(c)
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	c.Vary(fiber.HeaderAccept)
	if strings.Contains(c.Get(fiber.HeaderAccept), "text/event-stream") {
		return s.follow(c, id, after, eventFeed{s.store, strings.Clone(current(c).User.ID)})
	}
	limit, err := queryLimit(c, eventsDefault, eventsMax)
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	wait, err := queryWait(c)
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	page, err := s.await(c, id, after, limit, wait)
	if err != nil {
		return err
	}
	out, err := newEventsJSON(page, after, s.store.Cleaner(current(c).User.ID))
	if err != nil {
		return err
	}
	return sendCleanJSON(c, http.StatusOK, out)
}

// cursor is the larger of ?after and Last-Event-ID; neither is 0. Code: invalid.
func cursor(c *fiber.Ctx) (int64, error) {
	after, err := queryInt(c, "after", 0)
	if err != nil {
		return 0, err
	}
	last, err := onlyHeader(c, "Last-Event-ID")
	if err != nil || last == "" {
		return after, err
	}
	n, err := parseNumber("Last-Event-ID", last)
	return max(after, n), err
}

type eventsJSON struct {
	Events  []eventJSON `json:"events"`
	LastSeq int64       `json:"last_seq"` // of these events: the cursor for the next ones
	HasMore bool        `json:"has_more"`
}

func newEventsJSON(p store.Page, after int64, clean *journal.Cleaner) (eventsJSON, error) {
	out := eventsJSON{Events: make([]eventJSON, 0, len(p.Events)), LastSeq: after}
	size := 0
	for i := range p.Events {
		size += len(p.Events[i].Data)
		if size > answerBytes && i > 0 {
			break
		}
		data, err := clean.Event(&p.Events[i])
		if err != nil {
			return out, fmt.Errorf("clean event #%d: %w", p.Events[i].Seq, err)
		}
		out.Events = append(out.Events, newEventJSON(&p.Events[i], data))
		out.LastSeq = p.Events[i].Seq
	}
	out.HasMore = out.LastSeq < p.Head
	return out, nil
}

// await reads the events after a seq. If there are none it waits for one, but
// not longer than wait, than the server runs, or than the client is there.
func (s *Server) await(c *fiber.Ctx, id string, after int64, limit int, wait time.Duration) (store.Page, error) {
	who := current(c)
	if wait == 0 {
		return s.store.EventsAfter(c.UserContext(), who.User.ID, id, after, limit)
	}
	wake, unsubscribe := s.store.Subscribe(id) // first, then read: no commit is missed
	defer unsubscribe()
	end, poll := time.NewTimer(wait), time.NewTicker(s.pollTime)
	defer end.Stop()
	defer poll.Stop()
	conn := c.Context().Conn()
	for first := true; ; first = false {
		page, err := s.readEvents(c.UserContext(), who, id, after, limit, first)
		if err != nil || len(page.Events) > 0 {
			return page, err
		}
		if first {
			s.polls.Add(1)
			defer s.polls.Add(-1)
		}
		select {
		case <-s.stop:
			return page, nil
		case <-end.C:
			return page, nil
		case <-wake:
		case <-poll.C:
			if hungUp(conn) {
				return page, nil
			}
		}
	}
}

// readEvents reads a page for a reader who may have waited: then who it is is
// checked again. It has a deadline of its own.
func (s *Server) readEvents(ctx context.Context, who identity, id string, after int64, limit int, first bool) (store.Page, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readDeadline)
	defer cancel()
	if !first {
		gone, err := s.still(ctx, who)
		if err != nil {
			return store.Page{}, err
		}
		if gone != "" {
			return store.Page{}, journal.Errorf(journal.Unauthenticated, "Your access ended while you waited. Sign in, or use another token.").Typed(strings.ReplaceAll(gone, "_", "-"))
		}
	}
	return s.store.EventsAfter(ctx, who.User.ID, id, after, limit)
}
