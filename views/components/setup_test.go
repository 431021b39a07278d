package components_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
)

// now is the clock of these tests: 2026-11-29 13:26:00 UTC.
const now int64 = 1795958760000

// me is who looks.
var me = components.Viewer{ID: "usr_me", Email: "me@example.org"}

// render draws a component and parses it as a browser does.
func render(t *testing.T, c templ.Component) *goquery.Document {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// text is the text of what a selector finds, with single blanks.
func text(s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") }

// story folds bodies into a session, one a second, the last one now.
type story struct {
	t     *testing.T
	state journal.State
	seq   int64
	all   []journal.Event
}

func (s *story) add(actor journal.Actor, bodies ...journal.Body) *story {
	s.t.Helper()
	for _, b := range bodies {
		data, err := journal.Encode(b)
		if err != nil {
			s.t.Fatal(err)
		}
		s.seq++
		ev := journal.Event{Seq: s.seq, Kind: b.Kind(), Version: 1, Time: now - 60_000, Actor: actor, Data: json.RawMessage(data)}
		if err := s.state.Apply(&ev, b); err != nil {
			s.t.Fatal(err)
		}
		s.all = append(s.all, ev)
	}
	return s
}

func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{t: t}
	return s.add(journal.User(me.ID), &journal.SessionCreated{Title: "Try it", Agent: "runbook", Workspace: "/srv/work", Preset: "ask_writes", OwnerID: me.ID})
}

// begun is a story with an open turn.
func begun(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	s.add(journal.User(me.ID), &journal.PromptAdmitted{PromptID: "inp_1", Delivery: journal.Queue, Text: journal.T("do it")})
	return s.add(journal.Server(), &journal.TurnStarted{TurnID: "trn_1", Cause: journal.CausePrompt},
		&journal.PromptPromoted{PromptID: "inp_1", Delivery: journal.Queue, MessageID: "msg_1", TurnID: "trn_1"})
}

func (s *story) propose() *story {
	return s.add(journal.Agent(), &journal.CallProposed{CallID: "call_1", TurnID: "trn_1", Key: "k", Tool: "shell", Input: json.RawMessage(`{"command":"make deploy","shell":"sh"}`), Effect: journal.EffectEffect})
}

func (s *story) dispatch() *story {
	return s.propose().add(journal.Agent(), &journal.CallDispatched{CallID: "call_1", N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByRule, Text: "shell make *"}})
}

func (s *story) ask() *story {
	return s.propose().add(journal.Agent(), &journal.PermissionAsked{ID: "per_1", Tool: journal.ToolRef{CallID: "call_1"}, Permission: "shell", Resources: []string{"make deploy"}, Metadata: json.RawMessage(`{"command":"make deploy"}`)})
}

func (s *story) end(e journal.TurnEnded, by journal.Actor) *story {
	e.TurnID = "trn_1"
	return s.add(by, &e)
}

func (s *story) session() components.Session {
	return components.Session{ID: "ses_1", State: s.state, Now: now, LastSeq: s.seq, Preset: "Ask before writes", Viewer: me}
}
