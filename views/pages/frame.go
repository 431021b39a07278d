package pages

import (
	"cmp"
	"fmt"

	"holdfast/static"
	"holdfast/views/components"
)

// Frame is what stands around every page.
type Frame struct {
	Title   string // without the product's name
	Prefix  string // what the session needs, before the title (ux §4.5)
	Problem bool   // the page answers a form that could not be taken

	Stylesheet string
	Version    string
	Notices    []string // what degrades on this platform
	Full       bool     // the journal's disk takes no more
	Now        int64

	Viewer  components.Viewer // ID "": nobody is signed in
	Needs   int               // what needs the viewer, over all sessions
	Counts  bool              // the title has that number, unless it says something else
	Current string            // the entry of the navigation: sessions, needs, new or ""

	Refresh  int // seconds; 0: the page stays as it is
	KeysOff  bool
	Announce string // what is said aloud: "" for milestones, all, off
	Theme    string // light, dark, or "" as the system says
	Icon     string // what the tab shows: "" for plain, decision, reconcile, review
	Notice   components.Phrase
	NoticeOf string // the request, call or attempt that it is about, if it is about one
	SignOut  string // key of the form

	Problems []components.Problem
}

// DocumentTitle is what a browser's tab says.
func (f Frame) DocumentTitle() string {
	t := f.Prefix + components.Plain(f.Title) + " · Holdfast"
	switch {
	case f.wrong():
		return "Error: " + t
	case f.counted():
		return fmt.Sprintf("(%d) %s", f.Needs, t)
	}
	return t
}

func (f Frame) wrong() bool { return f.Problem || len(f.Problems) > 0 }

// counted reports whether the title begins with how much needs the viewer.
func (f Frame) counted() bool { return f.Counts && f.Needs > 0 && f.Prefix == "" && !f.wrong() }

// IconPath is where the tab's icon is.
func (f Frame) IconPath() string { return static.Path("icon-" + cmp.Or(f.Icon, "plain") + ".svg") }

func offlineIcon() string { return static.Path("icon-offline.svg") }

// Help is the page of words.
type Help struct{ Frame }
