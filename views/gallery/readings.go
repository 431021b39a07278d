package gallery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/views/components"
	"holdfast/views/internal/fixtures"
)

func registers() Section {
	s := Section{ID: "register", Title: "Register", Note: "Each execution state, as the server draws it: the view says when that was, since no script has taken over."}
	for _, r := range fixtures.Readings() {
		s.Examples = append(s.Examples, draw(r.Name, components.Register, r.Session))
	}
	return s
}

// stale is what the script makes of a register whose view isn't current.
func stale(register templ.Component) templ.Component {
	return changed(register,
		change{`class="cell" id="reading-execution"`, `class="cell stale" id="reading-execution"`},
		change{`class="cell" id="reading-needs"`, `class="cell stale" id="reading-needs"`},
		change{`<em class="last-known"></em>`, `<em class="last-known">, last known</em>`},
		change{`<i class="band" aria-hidden="true" hidden></i>`, `<i class="band" aria-hidden="true"></i>`},
		change{`<span class="as-of"></span>`, `<span class="as-of">New requests would not show here. </span>`},
		change{"As of <time datetime=\"" + components.ISO(fixtures.Now) + "\">13:26:00</time>. ", "As of 13:26:00. May have changed since. "})
}

func lastKnown() Section {
	s := Section{ID: "last-known", Title: "Register, last known", Note: "The same states while the view is disconnected, signed out or held: neutral, and in words."}
	for _, r := range fixtures.Readings() {
		one := draw(r.Name, components.Register, r.Session)
		one.Bodies[0] = stale(one.Bodies[0])
		s.Examples = append(s.Examples, one)
	}
	return s
}

// View is what the script says of the view by itself.
type View struct{ Key, Words, Icon, Detail string }

// Views are the words and icons of static/live.js, with an example of the second line.
var Views = []View{
	{"live", "Live", "eye", "Entry #0007, 1 min ago. Checked 3 s ago."},
	{"polling", "Refreshing every 15 s", "eye", "Checked 9 s ago."},
	{"reconnecting", "Reconnecting", "eyeoff", "Since 13:25:48."},
	{"disconnected", "Disconnected", "eyeoff", "Since 13:24:48. Trying again in 4 s."},
	{"signed_out", "Signed out", "lock", "The work continues. Sign in to see it."},
	{"held", "Held by you", "eyeheld", "As of 13:25:48. 12 newer entries."},
}

func views() Section {
	s := Section{ID: "views", Title: "Your view", Note: "What the script writes into the second reading. Without one it is “As of”, above."}
	session := fixtures.Begun().Ask().Session()
	for _, v := range Views {
		one := draw(v.Key, components.Register, session)
		list := []change{
			{`data-state="manual"`, `data-state="` + v.Key + `"`},
			{`<use href="#i-eye">`, `<use href="#i-` + v.Icon + `">`},
			{`<span class="words">` + session.View().Words + `</span>`, `<span class="words">` + v.Words + `</span>`},
		}
		one.Bodies[0] = withDetail(changed(one.Bodies[0], list...), v.Detail)
		if v.Key == "disconnected" || v.Key == "signed_out" || v.Key == "held" {
			one.Bodies[0] = stale(one.Bodies[0])
		}
		if v.Key == "disconnected" {
			one.Bodies[0] = changed(one.Bodies[0], change{` data-testid="try-now" hidden>`, ` data-testid="try-now">`})
		}
		s.Examples = append(s.Examples, one)
	}
	return s
}

func cells() Section {
	s := fixtures.Begun().Ask().Session()
	return Section{ID: "cells", Title: "Cells of the register", Note: "As a stream sends them, each to take the place of the one in the page.", Examples: []Example{
		draw("execution", components.ExecutionCell, s, true),
		draw("needs you", components.NeedsCell, s, true),
		draw("actions", components.RegisterActions, s, true).also(components.RegisterActions, life("stopping"), true),
	}}
}

func marks() Section {
	states := Example{Name: "execution states", Of: "Mark"}
	for _, r := range components.AllReadings() {
		states = states.also(components.Mark, r)
	}
	needs := Example{Name: "needs", Of: "Mark"}
	seen := map[string]bool{}
	for _, r := range fixtures.Readings() {
		if n := r.Session.NeedsYou(); !seen[n.Words] {
			seen[n.Words] = true
			needs = needs.also(components.Mark, n)
		}
	}
	calls := Example{Name: "calls", Of: "Mark"}
	for _, st := range callStates {
		calls = calls.also(components.Mark, components.CallState(&journal.Call{State: st}))
	}
	return Section{ID: "marks", Title: "Marks", Note: "A shape and words, always both.", Examples: []Example{
		states, needs, calls.also(components.Mark, components.CallState(&journal.Call{State: journal.CallIsDispatched, AdoptedAt: fixtures.Now})).
			also(components.Mark, components.CallState(&journal.Call{State: journal.CallCancelled, Reason: journal.ReasonNotStarted})).also(components.Mark, components.CallState(&journal.Call{State: journal.CallIsUnknown, Resolution: &journal.Resolution{Outcome: journal.InPart}})),
	}}
}

var callStates = []journal.CallState{
	journal.CallIsProposed, journal.CallIsWaiting, journal.CallIsRefused, journal.CallIsDispatched,
	journal.CallSucceeded, journal.CallFailed, journal.CallCancelled, journal.CallIsUnknown,
}

// life is the session of the fixtures with that name.
func life(name string) components.Session {
	list := fixtures.Readings()
	return list[slices.IndexFunc(list, func(r fixtures.Reading) bool { return r.Name == name })].Session
}

// withDetail puts words into the second line of the view's cell.
func withDetail(register templ.Component, words string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		html, err := drawn(ctx, register)
		if err != nil {
			return err
		}
		const open = `<p class="cell-d num">`
		before, after, ok := strings.Cut(html, `</p><button type="button" class="btn-s" id="try-now"`)
		i := strings.LastIndex(before, open)
		if !ok || i < 0 {
			return errors.New("the view's cell has no second line for the script to write")
		}
		_, err = io.WriteString(w, before[:i+len(open)]+words+html[len(before):len(html)-len(after)]+after)
		return err
	})
}

// sequence numbers the drawings of a page; body -1 is the heading of an example.
func sequence(section Section, example, body int) string {
	return fmt.Sprintf("%s-%d-%d", section.ID, example+1, body+1)
}
