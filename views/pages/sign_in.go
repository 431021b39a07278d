package pages

import (
	"encoding/json"

	"holdfast/views/components"
)

// SignIn is the page to sign in, by address and password or by a link.
type SignIn struct {
	Frame
	Next  string
	Email string // typed before
	Code  string // of a sign-in link: the page asks once more, since scanners open links too
	Draft *Draft // what was sent after the sign-in had ended
	Lost  string // what was not done then, in a sentence
	Ended *EndedSignIn
}

// Draft is a form that was not taken: a text, or what was chosen. The form to sign in
// carries it; it is stored nowhere.
type Draft struct {
	Action, Field string // what it was meant for
	For           string // whom its form was drawn for: nobody else is shown it
	Text, Key     string
	Lost          string  // what was not done, in a sentence
	Fields        []Field // what goes along
	Along         []Typed // the same, as people read it
	Again         string  // the label of the form that sends it; "": it is only shown
	Page          string  // where it belongs
}

// The fields by which a form carries a draft.
const (
	DraftField  = "draft"
	DraftAction = "draft_action"
	DraftMore   = "draft_more"
)

// NotDone says what was not done, of a form without a text.
func (p SignIn) NotDone() string {
	if p.Draft != nil && p.Draft.Text == "" {
		return p.Draft.Lost + " Sign in as the same person and choose again: what you chose is filled in."
	}
	return p.Lost + " Sign in and choose again."
}

// Promise is what becomes of the text after the sign-in.
func (d Draft) Promise() string {
	if d.Again == "" {
		return "it is shown to you, to take along when you answer again."
	}
	return "it is shown to you with a button that sends it."
}

// More is what goes along with the text, its key, and whose it is, as JSON.
func (d Draft) More() (string, error) {
	more := map[string]string{"idempotency_key": d.Key, "for": d.For}
	for _, f := range d.Fields {
		more[f.Name] = f.Value
	}
	b, err := json.Marshal(more)
	return string(b), err
}

// EndedSignIn is when a sign-in ended by itself, and what went on.
type EndedSignIn struct {
	At      int64
	Running int
}

// Says tells it in a sentence.
func (e EndedSignIn) Says() components.Phrase {
	p := components.Say("You were signed out at ", components.At(e.At), ". ")
	switch e.Running {
	case 0:
		return components.Say(p, "No session is running.")
	case 1:
		return components.Say(p, "One session is still running. Sign in to see it.")
	}
	return components.Say(p, components.UpperFirst(count(e.Running))+" sessions are still running. Sign in to see them.")
}

// Unsent is the page that offers a draft to its sender.
type Unsent struct {
	Frame
	Draft Draft
}

// Setup is the page of the first user.
type Setup struct {
	Frame
	Code  string
	Email string
}
