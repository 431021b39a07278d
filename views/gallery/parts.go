package gallery

import (
	"holdfast/static"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
	"holdfast/views/pages"
)

// pageParts are the parts of a session's page that have no component of their
// own: they stand in one place only.
func pageParts() Section {
	s := Section{ID: "parts", Title: "Parts of a session’s page", Note: "As a script is sent them: the notice of a block, the facts, the form to archive among them."}
	for _, name := range []string{"blocked", "running", "uncertain", "ready", "closed"} {
		p := pages.Session{Frame: frame(), S: life(name), Keys: pages.SessionKeys{Continue: "key", Archive: "key"}}
		p.Composer = components.Composer{Session: p.S, Key: "key", Steers: true}
		if name == "uncertain" {
			p.Unknown = []components.UnknownCard{unknown(nil)}
		}
		s.Examples = append(s.Examples, plain(name, pages.SessionParts(p)))
	}
	return s
}

func frame() pages.Frame {
	return pages.Frame{Title: "Try it", Stylesheet: static.StylesheetPath(), Now: fixtures.Now, Viewer: fixtures.Me, Needs: 2}
}
