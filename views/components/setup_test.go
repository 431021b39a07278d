package components_test

import (
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

// now is the clock of these tests: 2026-11-29 13:26:00 UTC.
const now = fixtures.Now

// me is who looks.
var me = fixtures.Me

// live is a claim that was renewed just now.
func live() *journal.Claim { return fixtures.Claim() }

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

// story is a life of the fixtures, under the short names of these tests.
type story struct{ life *fixtures.Life }

func newStory(t *testing.T) *story { t.Helper(); return &story{fixtures.Created()} }

// begun is a story with an open turn.
func begun(t *testing.T) *story { t.Helper(); return &story{fixtures.Begun()} }

func (s *story) add(actor journal.Actor, bodies ...journal.Body) *story {
	s.life.Add(actor, bodies...)
	return s
}

func (s *story) dispatch() *story { s.life.Dispatch(); return s }
func (s *story) ask() *story      { s.life.Ask(); return s }

func (s *story) end(e journal.TurnEnded, by journal.Actor) *story { s.life.End(e, by); return s }

func (s *story) session() components.Session { return s.life.Session() }
