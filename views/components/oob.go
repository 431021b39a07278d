package components

import "github.com/a-h/templ"

// OOB marks a part that a script puts in the place of the one with the same id.
// One template draws a part for the page and for the stream.
func OOB(out bool) templ.Attributes {
	if out {
		return templ.Attributes{"hx-swap-oob": "true"}
	}
	return nil
}
