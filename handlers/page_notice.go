package handlers

import (
	"fmt"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
)

// notice is what a page says after a form was taken. The address of the page
// carries its name, and the number of an entry. Anybody can write such an
// address: a page says only what it finds to be so.
type notice string

const (
	noticeRecorded  notice = "recorded"
	noticeAlready   notice = "already"
	noticeWithdrawn notice = "withdrawn"
	noticeStopping  notice = "stopping"
	noticeStopped   notice = "stopped"
	noticeContinued notice = "continued"
	noticeArchived  notice = "archived"
	noticeKept      notice = "kept"
	noticeNotKept   notice = "not-kept"
	noticeSaved     notice = "saved"
	noticeNotYours  notice = "not-yours"
	noticeStored    notice = "stored"
	noticeDeleted   notice = "deleted"
	noticeSet       notice = "set"
)

var noticeWords = map[notice]string{
	noticeRecorded: "Recorded", noticeAlready: "Already recorded", noticeWithdrawn: "Withdrawn",
	noticeStopping: "Stopping was asked for", noticeStopped: "The turn has ended already; nothing is left to stop",
	noticeContinued: "The session goes on", noticeArchived: "Archived",
	noticeKept: "Your text is kept. It was not sent", noticeSaved: "Your settings are saved",
	noticeNotKept:  "No text that you typed is kept here",
	noticeSet:      "The agent’s settings are chosen from the next message on",
	noticeNotYours: "A text that somebody else had typed was not sent, and is not shown to you",
}

// noticeHolds are those that need no entry, with what must be so of the session.
var noticeHolds = map[notice]func(*store.SessionPage) bool{
	noticeStopped: func(p *store.SessionPage) bool {
		return p.Session.State.Turn != nil && !p.Session.State.TurnOpen()
	},
	noticeContinued: func(p *store.SessionPage) bool { return continued(&p.Session) },
	noticeArchived:  func(p *store.SessionPage) bool { return p.Session.State.Archived },
	noticeKept:      func(p *store.SessionPage) bool { return p.Unsent.Text != "" },
	noticeNotKept:   func(p *store.SessionPage) bool { return p.Unsent.Text == "" },
}

// pageNotice is the notice of a page that isn't a session's, if the address asks for
// this one; holds: it is so.
func pageNotice(c *fiber.Ctx, n notice, holds bool) components.Phrase {
	if !holds || notice(c.Query("notice")) != n {
		return nil
	}
	return components.Say(noticeWords[n] + ".")
}

// sessionNotice is the notice that the address of a session's page asks for, and
// the request, call or attempt that it is about, if it is about one.
func (s *Server) sessionNotice(c *fiber.Ctx, snap *store.SessionPage) (says components.Phrase, of string) {
	n := notice(c.Query("notice"))
	seq, err := strconv.ParseInt(c.Query("seq"), 10, 64)
	if err != nil || seq < 1 {
		if holds := noticeHolds[n]; holds != nil && holds(snap) {
			says = components.Say(noticeWords[n] + ".")
		}
		return says, ""
	}
	// From one entry back there is that entry, unless the session isn't that long.
	p, err := s.store.EventsBefore(c.UserContext(), current(c).User.ID, snap.Session.ID, seq+1, 1)
	if err != nil || len(p.Events) != 1 || p.Events[0].Seq != seq {
		return nil, ""
	}
	body, err := p.Events[0].Decode()
	if err != nil {
		return nil, ""
	}
	what, of, ok := s.noticeAbout(c, snap, n, body)
	if !ok {
		return nil, ""
	}
	return components.Say(wordsNow(snap, n)+recordedWord(n), components.EntryLink(seq), what, ".", unansweredYet(snap, body), endedSince(snap, n)), of
}

// wordsNow are the words of a notice as the session stands now: the address stays
// while it moves on.
func wordsNow(snap *store.SessionPage, n notice) string {
	if n == noticeContinued && !goesOn(&snap.Session.State) {
		return "The session was continued"
	}
	return noticeWords[n]
}

// goesOn reports whether a turn is open, or one will begin by itself.
func goesOn(st *journal.State) bool { return st.TurnOpen() || len(st.Admitted) > 0 && !st.Held }

// endedSince says that what was asked for has come about.
func endedSince(snap *store.SessionPage, n notice) string {
	switch st := &snap.Session.State; {
	case n == noticeStopping && !st.TurnOpen():
		return " The turn has ended."
	case n == noticeContinued && !goesOn(st):
		return " Its turn has ended since."
	}
	return ""
}

// unansweredYet says that a word about an outcome isn't the last that is needed.
func unansweredYet(snap *store.SessionPage, body journal.Body) string {
	n := snap.Session.State.Unknowns()
	switch body.(type) {
	case *journal.CallResolved, *journal.AttemptResolved:
		if n == 1 {
			return " Another card has to be answered before the session goes on."
		}
		if n > 1 {
			return fmt.Sprintf(" %d other cards have to be answered before the session goes on.", n)
		}
	}
	return ""
}

// recordedWord stands between a notice and the entry that it is about.
func recordedWord(n notice) string {
	if n == noticeSet {
		return ", recorded as "
	}
	return " as "
}

// noticeAbout says what an entry records that a notice may speak of; false if the
// notice speaks of others.
func (s *Server) noticeAbout(c *fiber.Ctx, snap *store.SessionPage, n notice, body journal.Body) (what components.Phrase, of string, ok bool) {
	recorded := n == noticeRecorded || n == noticeAlready
	switch b := body.(type) {
	case *journal.PromptAdmitted:
		return components.Say(": your message"), "", recorded
	case *journal.PermissionReplied:
		return s.replyNotice(c, snap, b), b.ID, recorded
	case *journal.CallResolved:
		what = components.Say(": your word about a call")
		if call, err := s.store.Call(c.UserContext(), current(c).User.ID, b.CallID); err == nil {
			what = components.Say(": your word about the call of ", components.EntryOf(call.SessionID, call.ProposedSeq))
		}
		return what, b.CallID, recorded
	case *journal.AttemptResolved:
		return components.Say(": your word about a message to the agent"), b.AttemptID, recorded
	case *journal.PromptWithdrawn:
		return nil, "", n == noticeWithdrawn
	case *journal.InterruptRequested:
		return nil, "", n == noticeStopping
	case *journal.ContinuationRequested:
		return nil, "", n == noticeContinued
	case *journal.SettingsChosen:
		return nil, "", n == noticeSet
	}
	return nil, "", false
}

// replyNotice names the request by the entry whose number its card has: another
// card may stand right below.
func (s *Server) replyNotice(c *fiber.Ctx, snap *store.SessionPage, b *journal.PermissionReplied) components.Phrase {
	did, once := "allowed", ", once"
	if b.Reply == journal.ReplyReject {
		did, once = "denied", ""
	}
	r, err := s.store.Request(c.UserContext(), current(c).User.ID, b.ID)
	if err != nil {
		return components.Say(": you " + did + " a request" + once)
	}
	return components.Say(": you "+did+" what ", components.EntryOf(r.Request.SessionID, r.Request.AskedSeq), " asked"+once, stillAsked(snap, r.Request.Tool.CallID))
}

// stillAsked says that a call waits for other answers.
func stillAsked(snap *store.SessionPage, call string) string {
	n := 0
	for _, r := range snap.Requests {
		if r.Tool.CallID == call {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return ". Nothing was run yet: another request for the same command waits for your answer"
	}
	return fmt.Sprintf(". Nothing was run yet: %d other requests for the same command wait for your answer", n)
}

// toSession sends the browser to a session's page with a notice.
func toSession(c *fiber.Ctx, id string, n notice, seq int64) error {
	to := "/sessions/" + id + "?notice=" + string(n)
	if seq > 0 {
		to += "&seq=" + strconv.FormatInt(seq, 10)
	}
	return seeOther(c, to)
}

// recordedAs finds the newest entry that says what was just recorded; 0 if it
// isn't among the last ones any more. It is for a notice only.
func (s *Server) recordedAs(c *fiber.Ctx, session string, says func(journal.Body) bool) int64 {
	p, err := s.store.EventsBefore(c.UserContext(), current(c).User.ID, session, 0, 50)
	if err != nil { // what was recorded stays so; the notice has no number then
		return 0
	}
	for i := len(p.Events) - 1; i >= 0; i-- {
		if body, err := p.Events[i].Decode(); err == nil && says(body) {
			return p.Events[i].Seq
		}
	}
	return 0
}
