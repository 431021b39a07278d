package components

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/a-h/templ"

	"holdfast/journal"
)

// Phrase is a sentence with times, code and links in it.
type Phrase []Word

// Word is a piece of a phrase: text, or one of the others.
type Word struct {
	Text    string
	Code    bool
	Strong  bool
	Href    string // a link to a place of ours
	At      int64  // a time; Text is unused
	Seconds bool
	Since   int64 // how long ago a time is, which a script keeps right; Text is unused
	Last    bool  // that time is the last entry's, which a script knows to be later as entries come
}

// Say makes a phrase of strings, words and phrases.
func Say(parts ...any) Phrase {
	var p Phrase
	for _, part := range parts {
		switch v := part.(type) {
		case string:
			if v != "" {
				p = append(p, Word{Text: v})
			}
		case Word:
			p = append(p, v)
		case Phrase:
			p = append(p, v...)
		}
	}
	return p
}

// At is a time to the minute.
func At(ms int64) Word { return Word{At: ms} }

// AtSecond is a time to the second.
func AtSecond(ms int64) Word { return Word{At: ms, Seconds: true} }

// Age is how long ago a moment is.
func Age(ms int64) Word { return Word{Since: ms} }

// AgeOfLast is how long ago the session's last entry was.
func AgeOfLast(ms int64) Word { return Word{Since: ms, Last: true} }

// Code is a piece of a command, a path or a name, on one line.
func Code(s string) Word { return Word{Text: Line(s, 160), Code: true} }

// Link leads to a place of ours.
func Link(href, text string) Word { return Word{Href: href, Text: text} }

// EntryLink leads to an entry of the same page.
func EntryLink(seq int64) Word { return Link("#"+EntryID(seq), "entry "+Number(seq)) }

// EntryOf leads to an entry of a session from any page: to a window that ends with it.
func EntryOf(session string, seq int64) Word {
	return Link(fmt.Sprintf("/sessions/%s?before=%d#%s", session, seq+1, EntryID(seq)), "entry "+Number(seq))
}

// Quoted is what somebody else wrote, an agent or a program, in a phrase of ours.
func Quoted(s string, n int) Word { return Word{Text: journal.Quote(s, n)} }

// String is the phrase as plain text, for a label; times are in UTC.
func (p Phrase) String() string {
	var b strings.Builder
	for _, w := range p {
		if w.At != 0 {
			b.WriteString(Stamp(w.At, w.At, w.Seconds))
			continue
		}
		if w.Since != 0 {
			b.WriteString("some time")
			continue
		}
		b.WriteString(Plain(w.Text))
	}
	return b.String()
}

// Text draws text of any origin: escaped, with acting characters made visible.
func Text(s string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return writeText(w, maskText(ctx, s))
	})
}

// Pre draws a text exactly, inside pre. A parser drops the first newline
// there, so one is put before it.
func Pre(s string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		return writeExact(w, maskText(ctx, s))
	})
}

// Typed draws the text of a textarea as it was typed: it is sent again as it
// stands, so nothing in it is replaced.
func Typed(s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "\n"+templ.EscapeString(s))
		return err
	})
}

func writeText(w io.Writer, s string) error {
	for _, seg := range Segments(s) {
		text := templ.EscapeString(seg.Text)
		if seg.Escape {
			text = `<span class="esc">` + text + `</span>`
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

// Sentence draws a phrase.
func Sentence(p Phrase, now int64) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		for _, word := range p {
			word.Text = maskText(ctx, word.Text)
			if err := word.write(w, now); err != nil {
				return err
			}
		}
		return nil
	})
}

func (word Word) write(w io.Writer, now int64) error {
	open, end := "", ""
	switch {
	case word.At != 0:
		_, err := io.WriteString(w, `<time datetime="`+ISO(word.At)+`">`+Stamp(word.At, now, word.Seconds)+`</time>`)
		return err
	case word.Since != 0:
		last := ""
		if word.Last {
			last = " data-last"
		}
		_, err := fmt.Fprintf(w, `<span data-since="%d"%s>%s</span>`, word.Since, last, Ago(now-word.Since))
		return err
	case word.Href != "":
		open, end = `<a href="`+templ.EscapeString(string(templ.URL(word.Href)))+`">`, "</a>"
	case word.Code:
		open, end = "<code>", "</code>"
	case word.Strong:
		open, end = "<b>", "</b>"
	}
	if _, err := io.WriteString(w, open); err != nil {
		return err
	}
	write := writeQuotes
	if word.Code {
		write = writeExact
	}
	if err := write(w, word.Text); err != nil {
		return err
	}
	_, err := io.WriteString(w, end)
	return err
}

// writeQuotes is writeText of a sentence of ours. What stands in its quotes somebody else
// wrote: its letters may run from right to left, and change the order of none of ours.
func writeQuotes(w io.Writer, s string) error {
	for s != "" {
		ours, said, rest := nextQuote(s)
		if err := writeText(w, ours); err != nil {
			return err
		}
		if said != "" {
			if _, err := io.WriteString(w, `<bdi class="quoted">`); err != nil {
				return err
			}
			if err := writeText(w, said); err != nil {
				return err
			}
			if _, err := io.WriteString(w, "</bdi>"); err != nil {
				return err
			}
		}
		s = rest
	}
	return nil
}

// nextQuote splits a sentence around its first quotes, which are part of what they hold.
// One that isn't ended holds the rest.
func nextQuote(s string) (ours, said, rest string) {
	from := strings.Index(s, "“")
	if from < 0 {
		return s, "", ""
	}
	to := strings.Index(s[from:], "”")
	if to < 0 {
		return s[:from], s[from:], ""
	}
	to += from + len("”")
	return s[:from], s[from:to], s[to:]
}
