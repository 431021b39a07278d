package pages

import (
	"fmt"

	"github.com/a-h/templ"
)

// current marks the entry of the navigation where the viewer is.
func current(here bool) templ.Attributes {
	if here {
		return templ.Attributes{"aria-current": "page"}
	}
	return nil
}

// about ties words to the request or call that they are about.
func about(id string) templ.Attributes {
	if id == "" {
		return nil
	}
	return templ.Attributes{"data-of": id}
}

// rootAttributes are what the whole page goes by.
func (f Frame) rootAttributes() templ.Attributes {
	out := templ.Attributes{}
	if f.Theme != "" {
		out["data-theme"] = f.Theme
	}
	if f.KeysOff {
		out["data-keys"] = "off"
	}
	if f.Viewer.ID != "" {
		out["data-viewer"] = f.Viewer.ID // whom it was drawn for; a script covers it from anybody else
	}
	if f.Viewer.ID != "" && f.Now > 0 {
		out["data-pulse"] = fmt.Sprint(f.Now)
		out["data-needs"] = fmt.Sprint(f.Needs)
	}
	if f.counted() {
		out["data-counted"] = true
	}
	if f.Prefix != "" {
		out["data-prefixed"] = true // its title says already what is needed, of this one session
	}
	return out
}
