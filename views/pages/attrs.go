package pages

import "github.com/a-h/templ"

// current marks the entry of the navigation where the viewer is.
func current(here bool) templ.Attributes {
	if here {
		return templ.Attributes{"aria-current": "page"}
	}
	return nil
}
