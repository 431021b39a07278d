package pages

import "holdfast/views/components"

// Failure is an error as a page: what happened, what still holds, what one can do.
type Failure struct {
	Frame
	Status    int
	Heading   string
	Message   string
	Details   []components.Phrase
	RequestID string
	Text      string // what was typed, so that it isn't lost
	Typed     []Typed
	Resend    *Resend
	Links     []components.Word
}

// Resend is the form that sends a refused text again.
type Resend struct {
	Action string
	Key    string // the same to repeat, a new one to send it as something else
	Label  string
	Field  string // the name of the text's field
	Fields []Field
}

// Field is a hidden field that goes along.
type Field struct{ Name, Value string }

// Typed is what was typed into a field of one line, with what the field is called.
type Typed struct {
	Field
	Label string
}
