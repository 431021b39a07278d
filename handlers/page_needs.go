package handlers

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// inboxMax bounds each kind of thing in the inbox.
const inboxMax = 100

// showNeedsYou: GET /needs-you, over all sessions, oldest first.
func (s *Server) showNeedsYou(c *fiber.Ctx) error {
	now, err := s.store.Now(c.UserContext())
	if err != nil {
		return err
	}
	f, err := s.frame(c, "Needs you", "needs", now)
	if err != nil {
		return err
	}
	p := pages.NeedsYou{Frame: f}
	if err := s.fillInbox(c.UserContext(), &p); err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.NeedsYouPage(p))
}

func (s *Server) fillInbox(ctx context.Context, p *pages.NeedsYou) error {
	v := p.Viewer
	list, next, err := s.store.Sessions(ctx, v.ID, store.SessionQuery{Needs: true, Limit: inboxMax})
	if err != nil {
		return err
	}
	in := inbox{s: s, page: p, sessions: map[string]components.Session{}}
	p.More = next != ""
	for i := range list {
		one := sessionView(&list[i], v)
		in.sessions[one.ID] = one
		in.addSession(one)
	}
	requests, more, err := s.store.Requests(ctx, v.ID, store.RequestQuery{State: journal.RequestPending, Limit: inboxMax})
	if err != nil {
		return err
	}
	p.More = p.More || more != ""
	for _, r := range requests {
		if err := in.addRequest(ctx, r); err != nil {
			return err
		}
	}
	components.NumberCards(in.cards...)
	unknown, err := s.store.UnknownCalls(ctx, v.ID, inboxMax)
	if err != nil {
		return err
	}
	for _, call := range unknown {
		if err := in.addCall(ctx, call); err != nil {
			return err
		}
	}
	slices.SortStableFunc(p.Open, func(a, b pages.InboxItem) int { return cmp.Compare(a.Since, b.Since) })
	running, _, err := s.store.Sessions(ctx, v.ID, store.SessionQuery{State: journal.StateRunning, Limit: inboxMax})
	p.Running = len(running)
	for i := range running {
		p.Latest = max(p.Latest, running[i].UpdatedAt)
	}
	return err
}

// inbox gathers what waits for the viewer.
type inbox struct {
	s        *Server
	page     *pages.NeedsYou
	sessions map[string]components.Session
	cards    []*components.DecisionCard
}

func (in *inbox) session(ctx context.Context, id string) (components.Session, error) {
	if one, ok := in.sessions[id]; ok {
		return one, nil
	}
	one, err := in.s.store.Session(ctx, in.page.Viewer.ID, id)
	in.sessions[id] = sessionView(&one, in.page.Viewer)
	return in.sessions[id], err
}

// addSession adds what a session as a whole waits for.
func (in *inbox) addSession(one components.Session) {
	switch {
	case one.State.Needs() == journal.NeedsReview:
		in.page.Ready = append(in.page.Ready, one)
	case one.State.Blocked != nil && one.State.Base == journal.StateBlocked:
		in.page.Open = append(in.page.Open, pages.InboxItem{
			Kind: components.Reading{Key: "blocked", Words: one.Execution().Words, Icon: "hold", Tone: components.ToneAsk}, Session: one,
			Since: one.State.BaseSince, Text: components.Line(one.State.Blocked.Detail, 160), Href: one.Path() + "#needs", Action: "See what is missing",
		})
	}
	for _, id := range one.State.UnknownAttempts {
		in.page.Open = append(in.page.Open, pages.InboxItem{
			Kind: reconcileMark(), Session: one, Since: one.State.BaseSince, Text: "A request to the model", Href: one.Path() + "#" + id, Action: "Check and record",
		})
	}
}

func reconcileMark() components.Reading {
	return components.Reading{Key: "reconcile", Words: "Reconcile", Icon: "unk", Tone: components.ToneUnk}
}

func (in *inbox) addRequest(ctx context.Context, r *journal.Request) error {
	one, err := in.session(ctx, r.SessionID)
	if err != nil {
		return err
	}
	card := components.NewDecisionCard(r, nil, in.page.Now, newKey())
	in.cards = append(in.cards, &card)
	in.page.Open = append(in.page.Open, pages.InboxItem{
		Kind: components.Reading{Key: "decision", Words: "Decision: " + card.Asks(), Icon: "ask", Tone: components.ToneAsk}, Session: one, Since: r.AskedAt,
		Card: &card, Text: card.Payload.Title(), Href: card.Path(), Action: "Read and answer",
	})
	return nil
}

func (in *inbox) addCall(ctx context.Context, call *journal.Call) error {
	one, err := in.session(ctx, call.SessionID)
	if err != nil {
		return err
	}
	in.page.Open = append(in.page.Open, pages.InboxItem{
		Kind: reconcileMark(), Session: one, Since: call.EndedAt,
		Text: components.NewCallTitle(call.Tool, components.CallPayload(call)), Href: components.CallPath(call.ID), Action: "Check and record",
	})
	return nil
}

// showRequest: GET /permissions/:id.
func (s *Server) showRequest(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "per")
	if err != nil {
		return err
	}
	r, err := s.store.Request(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	card := components.NewDecisionCard(r.Request, r.Call, r.Session.Now, newKey())
	if err := s.numberCard(c.UserContext(), current(c).User.ID, &card); err != nil {
		return err
	}
	title := "Decision"
	if nth := card.Nth(); nth != "" { // several of one call would have the same title
		title = "Decision" + card.Apart()
	}
	f, err := s.frame(c, title+": "+r.Session.State.Title, "needs", r.Session.Now)
	if err != nil {
		return err
	}
	p := pages.Request{Frame: f, S: sessionView(&r.Session, f.Viewer), Card: card, Call: r.Call}
	p.Card.Own = true
	if r.Request.State == journal.RequestPending {
		p.Prefix = p.S.TitlePrefix()
	}
	if p.Entries, err = s.lastEntries(c, r.Request.SessionID); err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.RequestPage(p))
}

// numberCard says which of its call's pending requests a card is.
func (s *Server) numberCard(ctx context.Context, ownerID string, card *components.DecisionCard) error {
	if card.Request.State != journal.RequestPending {
		return nil
	}
	list, _, err := s.store.Requests(ctx, ownerID, store.RequestQuery{Session: card.Request.SessionID, State: journal.RequestPending, Limit: inboxMax})
	if err != nil {
		return err
	}
	cards := []*components.DecisionCard{card}
	for _, r := range list {
		if r.ID != card.Request.ID {
			cards = append(cards, &components.DecisionCard{Request: r})
		}
	}
	components.NumberCards(cards...)
	return nil
}

// contextEntries is how many of a journal's last entries stand beside a request or a call.
const contextEntries = 5

func (s *Server) lastEntries(c *fiber.Ctx, session string) ([]components.Entry, error) {
	snap, err := s.store.SessionPage(c.UserContext(), current(c).User.ID, session, 0, contextEntries)
	if err != nil {
		return nil, err
	}
	return components.Entries(windowOf(&snap, viewerOf(c))), nil
}

// submitDecision: POST /permissions/:id/decision. A form says what was read, by its digest.
func (s *Server) submitDecision(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "per")
	if err != nil {
		return err
	}
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	keep(c, kept{Text: f.text("message"), Request: id})
	key, err := f.key()
	if err != nil {
		return orHidden(err, func() error { return s.requestExists(c, id) })
	}
	d := store.Decision{Reply: journal.Reply(f.word("reply")), Message: f.text("message"), Digest: f.text("digest"), NeedDigest: true, Key: key}
	r, err := s.store.Decide(c.UserContext(), current(c).User.ID, id, d)
	if err != nil {
		return err
	}
	seq := s.recordedAs(c, r.Request.SessionID, func(b journal.Body) bool {
		replied, ok := b.(*journal.PermissionReplied)
		return ok && replied.ID == id
	})
	n := noticeRecorded
	if r.Replayed {
		n = noticeAlready
	}
	return toSession(c, r.Request.SessionID, n, seq)
}

func (s *Server) requestExists(c *fiber.Ctx, id string) error {
	_, err := s.store.Request(c.UserContext(), current(c).User.ID, id)
	return err
}
