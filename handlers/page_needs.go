package handlers

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// showNeedsYou: GET /needs-you, over all sessions, oldest first.
func (s *Server) showNeedsYou(c *fiber.Ctx) error {
	list, err := s.store.Inbox(c.UserContext(), current(c).User.ID)
	if err != nil {
		return err
	}
	f, err := s.frameOf(c.UserContext(), viewerOf(c), "Needs you", list.Now, list.Needs)
	if err != nil {
		return err
	}
	f.Current, f.Counts = "needs", true
	return draw(c, http.StatusOK, pages.NeedsYouPage(newInbox(f, &list)))
}

// newInbox is the page of what waits.
func newInbox(f pages.Frame, list *store.Inbox) pages.NeedsYou {
	in := inbox{page: pages.NeedsYou{Frame: f, Things: list.Count.Open(), Running: list.Running, Latest: list.Latest}, list: list}
	in.addDecisions()
	in.addReconciles()
	in.addMissing()
	p := &in.page
	slices.SortStableFunc(p.Open, func(a, b pages.InboxItem) int { return cmp.Compare(a.Since, b.Since) })
	p.Ready = each(list.Ready, func(one store.Session) components.Session { return sessionView(&one, f.Viewer) })
	p.ReadyRest = pages.InboxRest{What: "session", Shown: len(p.Ready), Of: list.Count.Ready}
	return *p
}

// inbox gathers what waits for the viewer.
type inbox struct {
	page pages.NeedsYou
	list *store.Inbox
}

func (in *inbox) session(id string) components.Session {
	one := in.list.Sessions[id]
	return sessionView(&one, in.page.Viewer)
}

// rest says that there is more of a kind than is shown.
func (in *inbox) rest(what string, shown, of int) {
	if of > shown {
		in.page.Rest = append(in.page.Rest, pages.InboxRest{What: what, Shown: shown, Of: of})
	}
}

func (in *inbox) addDecisions() {
	var cards []*components.DecisionCard
	for _, r := range in.list.Decisions {
		card := components.NewDecisionCard(r, nil, in.page.Now, newKey())
		cards = append(cards, &card)
		in.page.Open = append(in.page.Open, pages.InboxItem{
			Kind: components.Reading{Key: "decision", Words: "Decision: " + card.Asks(), Icon: "ask", Tone: components.ToneAsk}, Session: in.session(r.SessionID), Since: r.AskedAt,
			Card: &card, Text: card.Payload.Title(), Href: card.Path(), Action: "Read and answer",
		})
	}
	components.NumberCards(cards...)
	for _, card := range cards {
		card.Of = max(card.Of, in.list.Asked[card.Request.Tool.CallID])
	}
	in.rest("decision", len(cards), in.list.Count.Decisions)
}

func (in *inbox) addReconciles() {
	for _, u := range in.list.Reconciles {
		one := in.session(u.SessionID)
		item := pages.InboxItem{
			Kind: components.Reading{Key: "reconcile", Words: "Reconcile", Icon: "unk", Tone: components.ToneUnk}, Session: one, Since: u.Since,
			Text: "A message to the agent “" + components.Line(one.State.Agent, 40) + "”", Prose: true, Href: one.Path() + "#" + u.AttemptID, Action: "Check and record",
		}
		if lost := one.State.LostWith(u.AttemptID); lost != nil {
			item.Text += ", whose process may still be running"
			if lost.Host != "" {
				item.Text += " on " + components.Line(lost.Host, 60)
			}
		}
		if u.Call != nil {
			item.Prose = false
			item.Text, item.Href = components.NewCallTitle(u.Call.Tool, components.CallPayload(u.Call)), components.CallPath(u.Call.ID)
		}
		in.page.Open = append(in.page.Open, item)
	}
	in.rest("unknown outcome", len(in.list.Reconciles), in.list.Count.Reconciles)
}

func (in *inbox) addMissing() {
	for i := range in.list.Missing {
		one := sessionView(&in.list.Missing[i], in.page.Viewer)
		in.page.Open = append(in.page.Open, pages.InboxItem{
			Kind: components.Reading{Key: "blocked", Words: one.Missing(), Icon: "hold", Tone: components.ToneAsk}, Session: one,
			Since: one.State.BaseSince, Text: components.Told(one.MissingDetail(), 160), Prose: true, Href: one.Path() + "#needs", Action: one.MissingAction(),
		})
	}
	in.rest("blocked session", len(in.list.Missing), in.list.Count.Missing)
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
	asked := r.Call
	if r.Asked != nil && r.Request.State != journal.RequestPending { // what was decided on
		asked = r.Asked
	}
	card := components.NewDecisionCard(r.Request, asked, r.Session.Now, newKey())
	card.Nr, card.Of, card.Own, card.Agent = r.Nr, r.Of, true, r.Session.State.Agent
	card.After(r.Lost)
	f, err := s.frame(c, "", "needs", r.Session.Now)
	if err != nil {
		return err
	}
	p := pages.Request{Frame: f, S: sessionView(&r.Session, f.Viewer), Card: card, Call: r.Call, Anew: r.Call != nil && asked.InputSHA256 != r.Call.InputSHA256}
	if r.Request.State == journal.RequestPending {
		p.Prefix = p.S.TitlePrefix()
	}
	p.Title = p.Names()
	if p.Entries, err = s.lastEntries(c, r.Request.SessionID); err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.RequestPage(p))
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
