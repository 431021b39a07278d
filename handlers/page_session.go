package handlers

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// Sizes of the page of a session.
const (
	windowSize  = 50  // entries of the journal
	rowsMax     = 500 // of one answer to a page that was away
	autoRefresh = 60  // seconds
)

// showSession: GET /sessions/:id?before=SEQ&auto=60. For a script it answers
// with parts of the same page: ?after=SEQ the entries after it, ?before=SEQ those
// before it, neither the parts that change.
func (s *Server) showSession(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	c.Vary("HX-Request")
	if isScript(c) {
		return s.sendParts(c, id)
	}
	before, err := queryInt(c, "before", 0)
	if err != nil {
		return err
	}
	p, err := s.sessionPage(c, id, before)
	if err != nil {
		return err
	}
	return draw(c, http.StatusOK, pages.SessionPage(p))
}

// isScript reports whether a script of a page asks, which wants parts of it.
func isScript(c *fiber.Ctx) bool { return c.Get("HX-Request") == "true" }

// headHeader carries the head of the journal that an answer to a script was
// drawn from; an answer without it is not ours.
const headHeader = "X-Holdfast-Head"

func (s *Server) sendParts(c *fiber.Ctx, id string) error {
	after, err := queryInt(c, "after", -1)
	if err != nil {
		return err
	}
	before, err := queryInt(c, "before", 0)
	if err != nil {
		return err
	}
	who, ctx := current(c), c.UserContext()
	var snap store.SessionPage
	switch {
	case before > 0:
		snap, err = s.store.SessionPage(ctx, who.User.ID, id, before, windowSize)
	case after >= 0:
		snap, err = s.store.SessionAfter(ctx, who.User.ID, id, after, rowsMax)
	default:
		snap, err = s.store.SessionPage(ctx, who.User.ID, id, 0, 1)
	}
	if err != nil {
		return err
	}
	p, err := s.sessionModel(ctx, viewerOf(c), &snap, 0)
	if err != nil {
		return err
	}
	c.Set(headHeader, strconv.FormatInt(p.S.LastSeq, 10))
	switch {
	case before > 0:
		return draw(c, http.StatusOK, pages.SessionEarlier(p))
	case after >= 0:
		return draw(c, http.StatusOK, pages.SessionRows(p))
	}
	if says, of := s.sessionNotice(c, &snap); len(says) > 0 {
		c.Set("X-Holdfast-Said", says.String())
		c.Set("X-Holdfast-Of", of)
	}
	return draw(c, http.StatusOK, pages.SessionParts(p))
}

// sessionPage makes the page of a session from one snapshot (RDR-1).
func (s *Server) sessionPage(c *fiber.Ctx, id string, before int64) (pages.Session, error) {
	snap, err := s.store.SessionPage(c.UserContext(), current(c).User.ID, id, before, windowSize)
	if err != nil {
		return pages.Session{}, err
	}
	refresh := 0
	if c.Query("auto") == "60" {
		refresh = autoRefresh
	}
	p, err := s.sessionModel(c.UserContext(), viewerOf(c), &snap, refresh)
	if err != nil {
		return p, err
	}
	p.Window, p.Current = before, "sessions"
	p.Notice, p.NoticeOf = s.sessionNotice(c, &snap)
	markAway(&p, &snap)
	return p, nil
}

// sessionModel makes the page, or what a stream shows of it, from a snapshot.
// refresh: the seconds after which the page reloads by itself, or 0.
func (s *Server) sessionModel(ctx context.Context, v components.Viewer, snap *store.SessionPage, refresh int) (pages.Session, error) {
	p := pages.Session{S: sessionView(&snap.Session, v)}
	p.S.Full = s.store.Full()
	var err error
	if p.Frame, err = s.frameFor(ctx, v, p.S.Title(), snap.Session.Now); err != nil {
		return p, err
	}
	p.Prefix, p.Icon, p.Refresh, p.Seen = p.S.TitlePrefix(), p.S.TabIcon(), refresh, snap.Seen.Seq
	p.Keys = pages.SessionKeys{Continue: newKey(), Archive: newKey()}
	p.Entries = components.Entries(windowOf(snap, v))
	p.Trace = components.NewTrace(snap.Spans, snap.Session.Now)
	fillCards(&p, snap)
	s.nameMessages(ctx, &p)
	steers := s.aboutAgent(ctx, &p.S)
	for i := range p.Queue {
		p.Queue[i].Joins = steers && p.S.State.TurnOpen()
	}
	p.Forgotten = components.ForgottenCard{Session: p.S, Key: newKey(), Again: p.Keys.Continue, Summary: snap.Summary, Locked: p.Locked()}
	if c := snap.Commands; c != nil {
		p.Commands = components.CommandList{Commands: c.Commands, More: c.More}
	}
	p.Composer = components.Composer{
		Session: p.S, Key: newKey(), Waiting: len(p.Queue), Steers: steers, Text: snap.Unsent.Text, KeptAt: snap.Unsent.UpdatedAt,
	}
	return p, nil
}

func windowOf(snap *store.SessionPage, v components.Viewer) components.Window {
	w := components.Window{
		SessionID: snap.Session.ID, Events: snap.Events, Calls: snap.Calls, Before: snap.Before, Outputs: map[string]components.Ends{}, Texts: snap.Texts, Viewer: v, Now: snap.Session.Now,
		Writing: map[string]components.Writing{}, Through: snap.Through, Ended: snap.Session.UpdatedAt,
	}
	if snap.Session.State.Agent != runbook { // which keeps no conversation
		w.Untold = map[string]string{}
		for _, u := range snap.Untold {
			w.Untold[u.ID] = u.TurnID
		}
	}
	for _, m := range snap.Writing {
		w.Writing[store.MessageKey(m.Message, m.Part)] = components.Writing{Seq: m.Seq, CutOff: m.CutOff, Text: m.Text, Through: m.Through, Before: m.Before}
	}
	for id, o := range snap.Outputs {
		w.Outputs[id] = endsOf(o)
	}
	return w
}

func endsOf(o store.OutputEnds) components.Ends {
	return components.Ends{Head: string(o.Head), Tail: string(o.Tail), Total: o.Total}
}

// awayTime is how long somebody must have been away for a marker.
const awayTime = 60 * time.Second

// markAway places the marker after the last entry that the viewer has seen.
func markAway(p *pages.Session, snap *store.SessionPage) {
	gone := snap.Session.Now - snap.Seen.At
	if snap.Seen.Seq == 0 || snap.Seen.Seq >= snap.Session.LastSeq || gone < awayTime.Milliseconds() {
		return
	}
	p.AwayAfter, p.AwaySince = snap.Seen.Seq, snap.Seen.At
}

// fillCards makes what stands above the journal and the queue below it.
func fillCards(p *pages.Session, snap *store.SessionPage) {
	now := snap.Session.Now
	for _, r := range snap.Requests {
		card := components.NewDecisionCard(r, snap.Calls[r.Tool.CallID], now, newKey())
		card.Locked, card.Agent = p.Locked(), p.S.State.Agent
		card.After(snap.Lost[r.Tool.CallID])
		p.Requests = append(p.Requests, card)
	}
	cards := make([]*components.DecisionCard, len(p.Requests))
	for i := range p.Requests {
		cards[i] = &p.Requests[i]
	}
	components.NumberCards(cards...)
	for _, card := range cards {
		card.Of = max(card.Of, snap.Asked[card.Request.Tool.CallID])
	}
	others := snap.Session.State.Unknowns() - 1
	for _, call := range snap.Unknown {
		card := components.NewUnknownCard(call, now, newKey())
		card.Locked, card.Others = p.Locked(), others
		p.Unknown = append(p.Unknown, card)
	}
	st := &snap.Session.State
	goesOn := !st.Held && st.Sends()
	for _, id := range st.UnknownAttempts {
		p.Attempts = append(p.Attempts, components.AttemptCard{ID: id, Agent: p.S.State.Agent, Key: newKey(), Locked: p.Locked(), Others: others, Sends: goesOn, Lost: st.LostWith(id), Now: now})
	}
	for _, q := range snap.Queue {
		p.Queue = append(p.Queue, components.QueuedPrompt{
			ID: q.Receipt.ID, Seq: q.Receipt.AdmittedSeq, At: q.Receipt.CreatedAt, Delivery: q.Receipt.Delivery, Text: q.Text, Key: newKey(),
			Next: st.Turn != nil && slices.Contains(st.Turn.Sent, q.Receipt.ID),
		})
	}
}

// nameMessages says which message the attempts of the turn had that are to be
// reconciled. It is a hint: where it can't be read, the cards go without.
func (s *Server) nameMessages(ctx context.Context, p *pages.Session) {
	turn := p.S.State.Turn
	if len(p.Attempts) == 0 || turn == nil {
		return
	}
	begun, err := s.store.EventsAfter(ctx, p.Viewer.ID, p.S.ID, turn.StartedSeq, messagesAfter)
	if err != nil {
		return
	}
	for i := range begun.Events {
		body, err := begun.Events[i].Decode()
		prompt, ok := body.(*journal.PromptPromoted)
		if err != nil || !ok || prompt.TurnID != turn.ID {
			continue
		}
		texts, err := s.store.PromptTexts(ctx, p.S.ID, []string{prompt.PromptID})
		if err != nil {
			return
		}
		for j := range p.Attempts {
			p.Attempts[j].Message, p.Attempts[j].Whole = texts[prompt.PromptID], components.Say(components.EntryOf(p.S.ID, begun.Events[i].Seq))
		}
		return
	}
}

// messagesAfter is how many entries after its beginning a turn's message is looked for.
const messagesAfter = 10

// aboutAgent tells whether the session's agent takes text in mid-turn (PRO-4), and
// where there is more about it. Both are hints: if nobody can tell just now, the page
// says the usual.
func (s *Server) aboutAgent(ctx context.Context, one *components.Session) (steers bool) {
	agents, err := s.agents(ctx)
	if err != nil || one.State.Agent == runbook {
		return true
	}
	one.AgentHref = agentsPath
	for _, a := range agents {
		if a.Name == one.State.Agent {
			one.AgentHref, one.AfterTurn = components.AgentPath(a.Name), a.Steer == "after_turn"
			return !one.AfterTurn
		}
	}
	return true
}

// submitPrompt: POST /sessions/:id/prompts.
func (s *Server) submitPrompt(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	f, err := parseForm(c)
	if err != nil {
		return err
	}
	in := promptInput{Text: f.text("text"), Delivery: f.word("delivery"), TurnID: f.word(turnField)}
	keep(c, kept{
		Text: in.Text, Action: "/sessions/" + id + "/prompts", Field: "text", Key: f.text("idempotency_key"), Session: id,
		Fields: []pages.Field{{Name: "delivery", Value: in.Delivery}, {Name: turnField, Value: in.TurnID}, {Name: keptField, Value: f.text(keptField)}},
	})
	key, err := f.key()
	if err == nil {
		err = s.limit(c)
	}
	var r journal.Receipt
	if err == nil {
		r, err = s.createPrompt(c.UserContext(), current(c).User.ID, id, key, in)
	}
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	s.forgetUnsent(c, f, key, id)
	n := noticeRecorded
	if r.Replayed {
		n = noticeAlready
	}
	return toSession(c, id, n, r.AdmittedSeq)
}

// turnField is the turn that a form was drawn for, which alone it may stop.
const turnField = "turn_id"

// submitWithdrawal: POST /prompts/:id/withdrawal. A repeat is the same answer (ADM-8).
func (s *Server) submitWithdrawal(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "inp")
	if err != nil {
		return err
	}
	r, err := s.store.WithdrawPrompt(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	seq := s.recordedAs(c, r.SessionID, func(b journal.Body) bool {
		w, ok := b.(*journal.PromptWithdrawn)
		return ok && w.PromptID == id
	})
	return toSession(c, r.SessionID, noticeWithdrawn, seq)
}

// showStop: GET /sessions/:id/stop asks how to stop.
func (s *Server) showStop(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	one, err := s.store.Session(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return err
	}
	if !one.State.TurnOpen() {
		return toSession(c, id, noticeStopped, 0)
	}
	f, err := s.frame(c, "Stop this turn?", "sessions", one.Now)
	if err != nil {
		return err
	}
	view := sessionView(&one, f.Viewer)
	s.aboutAgent(c.UserContext(), &view)
	return draw(c, http.StatusOK, pages.StopPage(pages.Stop{Frame: f, S: view, Key: newKey()}))
}

// submitInterruption: POST /sessions/:id/interruption. Whether it is sent twice
// or too late, the turn has ended as it was asked for.
func (s *Server) submitInterruption(c *fiber.Ctx) error {
	id, f, err := s.sessionForm(c)
	if err != nil {
		return err
	}
	mode, err := parseMode(f.word("mode"))
	if err == nil {
		err = s.store.InterruptTurn(c.UserContext(), current(c).User.ID, id, f.word(turnField), mode)
	}
	if slugOf(err) == "no-open-turn" && s.endedByViewer(c, id) {
		return toSession(c, id, noticeStopped, 0)
	}
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	seq := s.recordedAs(c, id, func(b journal.Body) bool {
		_, ok := b.(*journal.InterruptRequested)
		return ok
	})
	return toSession(c, id, noticeStopping, seq)
}

// endedByViewer reports whether the last turn was stopped by who asks now: then
// this is the same form once more.
func (s *Server) endedByViewer(c *fiber.Ctx, id string) bool {
	one, err := s.store.Session(c.UserContext(), current(c).User.ID, id)
	if err != nil {
		return false
	}
	t := one.State.Turn
	return t != nil && !t.Open && t.Outcome == journal.Stopped && t.EndedBy == current(c).User.ID
}

// sessionForm reads a form about a session.
func (s *Server) sessionForm(c *fiber.Ctx) (string, form, error) {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return "", form{}, err
	}
	keep(c, kept{Session: id})
	f, err := parseForm(c)
	return id, f, err
}

// submitContinuation: POST /sessions/:id/continuation, and raises a limit if one is
// named, or starts anew.
func (s *Server) submitContinuation(c *fiber.Ctx) error {
	id, f, err := s.sessionForm(c)
	if err != nil {
		return err
	}
	keep(c, kept{Session: id, Action: "/sessions/" + id + "/continuation", Key: f.text("idempotency_key"), Typed: typedLimits(f)})
	limits, err := formLimits(f)
	if journal.Is(err, journal.Unprocessable) {
		return s.redrawContinuation(c, id, f, err)
	}
	anew, badAnew := formAnew(f)
	switch {
	case err != nil:
	case badAnew != nil:
		err = badAnew
	case anew:
		err = s.store.StartAnew(c.UserContext(), current(c).User.ID, id, limits)
	default:
		err = s.store.Continue(c.UserContext(), current(c).User.ID, id, limits)
	}
	if slug := slugOf(err); (slug == "nothing-held" || slug == "not-forgotten") && s.continuedByViewer(c, id) {
		return toSession(c, id, noticeContinued, 0)
	}
	if err != nil {
		return s.orNoSession(c, id, err)
	}
	seq := s.recordedAs(c, id, func(b journal.Body) bool {
		_, ok := b.(*journal.ContinuationRequested)
		return ok
	})
	return toSession(c, id, noticeContinued, seq)
}

// formAnew reads whether the session is to be started anew. Code: unprocessable.
func formAnew(f form) (bool, error) {
	switch f.word("anew") {
	case "":
		return false, nil
	case "true":
		return true, nil
	}
	return false, refuse("bad-anew", "anew must be true, or left out. Nothing was recorded.")
}

// redrawContinuation shows the session again, with the limit that was typed and
// what is wrong with it. Where its field isn't there, or not alone, the error's
// own page shows what was typed.
func (s *Server) redrawContinuation(c *fiber.Ctx, id string, f form, problem error) error {
	p, err := s.sessionPage(c, id, 0)
	if err != nil {
		return err
	}
	typed, name := typedLimits(f), p.S.Raises()
	if !p.S.Continuable() || len(typed) != 1 || typed[0].Name != name {
		return problem
	}
	text := messageOf(problem)
	p.Raise = components.RaiseTyped{Value: typed[0].Value, Problem: text}
	p.Problems = []components.Problem{{Field: "limit-" + name, Text: text}}
	return draw(c, http.StatusUnprocessableEntity, pages.SessionPage(p))
}

// continuedByViewer reports whether the turn that is open was continued already.
func (s *Server) continuedByViewer(c *fiber.Ctx, id string) bool {
	one, err := s.store.Session(c.UserContext(), current(c).User.ID, id)
	return err == nil && continued(&one)
}

func continued(one *store.Session) bool {
	return one.State.TurnOpen() && one.State.Turn.Cause == journal.CauseContinuation
}

// submitArchive: POST /sessions/:id/archive.
func (s *Server) submitArchive(c *fiber.Ctx) error {
	id, err := pathID(c, "id", "ses")
	if err != nil {
		return err
	}
	keep(c, kept{Session: id})
	if err := s.store.Archive(c.UserContext(), current(c).User.ID, id); err != nil {
		return err
	}
	return toSession(c, id, noticeArchived, 0)
}
