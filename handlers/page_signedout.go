package handlers

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
	"holdfast/views/pages"
)

// signedOutForm is what becomes of a form that is sent after its sender's sign-in has
// ended: nothing is done, which is said, and what may be kept is kept by the sign-in
// page. What was typed as the value of a credential never is.
type signedOutForm struct {
	path     *regexp.Regexp
	page     string   // where the form stands; $1 is the id
	lost     string   // what was not done, in a sentence
	field    string   // of its text; "": it has none
	fields   []string // what is kept besides
	settings bool     // the settings of an agent, too, which have names of their own
	again    string   // the label of the button that sends the text; "": it is only shown

	// refill draws the form again with what was chosen, for one without a text; nil: it
	// leads to its page.
	refill func(s *Server, c *fiber.Ctx, d *pages.Draft) error
}

// missionFields are those of the form for a new session, besides its text and the
// agents' settings.
var missionFields = slices.Concat([]string{"workspace", "agent", "preset", keptField}, limitFields)

// signedOutForms are all forms of pages. An answer isn't kept with its text: it is
// given anew, where what it answers can be read.
var signedOutForms = []signedOutForm{
	{path: regexp.MustCompile(`^/sessions$`), page: "/sessions/new", lost: "The session was not started.", field: "prompt", fields: missionFields, settings: true, again: "Start session", refill: (*Server).refillMission},
	{path: regexp.MustCompile(`^/sessions/new/unsent$`), page: "/sessions/new", lost: "The text was not kept.", field: "prompt", fields: missionFields, settings: true, again: "Keep the text, don’t send it"},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/prompts$`), page: "/sessions/$1", lost: "The message was not sent.", field: "text", fields: []string{"delivery", turnField, keptField}, again: "Send it now"},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/unsent$`), page: "/sessions/$1", lost: "The text that is kept was not changed.", field: "text", fields: []string{keptField}, again: "Keep the text, don’t send it"},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/settings$`), page: "/sessions/$1/settings", lost: "The settings were not recorded.", settings: true, refill: (*Server).refillAgentSettings},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/continuation$`), page: "/sessions/$1", lost: "The session was not continued, and nothing of its limits was changed."},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/interruption$`), page: "/sessions/$1", lost: "The turn was not stopped."},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/archive$`), page: "/sessions/$1", lost: "The session was not archived."},
	{path: regexp.MustCompile(`^/sessions/(ses_[0-9a-z]{1,64})/seen$`), page: "/sessions/$1", lost: "That you have seen it was not recorded."},
	{path: regexp.MustCompile(`^/prompts/(inp_[0-9a-z]{1,64})/withdrawal$`), page: "/", lost: "The message was not withdrawn."},
	{path: regexp.MustCompile(`^/permissions/(per_[0-9a-z]{1,64})/decision$`), page: "/permissions/$1", lost: "The answer was not recorded.", field: "message"},
	{path: regexp.MustCompile(`^/calls/(call_[0-9a-z]{1,64})/resolution$`), page: "/calls/$1", lost: "The answer was not recorded.", field: "evidence"},
	{path: regexp.MustCompile(`^/attempts/(att_[0-9a-z]{1,64})/resolution$`), page: "/needs-you", lost: "The answer was not recorded.", field: "evidence"},
	{path: regexp.MustCompile(`^/settings$`), page: "/settings", lost: "The settings were not saved.", fields: []string{"keys", "announce", "theme"}, refill: (*Server).refillSettings},
	{path: regexp.MustCompile(`^/settings/agents/([^/]{1,200})/probe$`), page: "/settings/agents/$1", lost: "The agent was not looked at."},
	{path: regexp.MustCompile(`^/settings/credentials$`), page: "/settings/credentials", lost: "The credential was not stored, and its value was not kept: type it again.", fields: []string{"name", "agent"}, refill: (*Server).refillCredential},
	{path: regexp.MustCompile(`^/settings/credentials/(crd_[0-9a-z]{1,64})/deletion$`), page: "/settings/credentials/$1/deletion", lost: "The credential was not deleted."},
}

// formAt is the form that is sent to a path; nil if none is that says anything lost.
func formAt(path string) *signedOutForm {
	for i := range signedOutForms {
		if signedOutForms[i].path.MatchString(path) {
			return &signedOutForms[i]
		}
	}
	return nil
}

// at is the page on which the form stands that is sent to a path.
func (k *signedOutForm) at(path string) string { return k.path.ReplaceAllString(path, k.page) }

// keeps reports whether a field may be kept besides the text.
func (k *signedOutForm) keeps(name string) bool {
	return slices.Contains(k.fields, name) || k.settings && strings.HasPrefix(name, "set:")
}

// along are the fields that go along with a text, as people read them.
func along(fields []pages.Field) []pages.Typed {
	labels := map[string]string{"workspace": "Workspace", "agent": "Agent", "preset": "Permissions"}
	for name, label := range limitNames {
		labels[name] = label
	}
	var out []pages.Typed
	for _, f := range fields {
		label, value := labels[f.Name], f.Value
		if rest, ok := strings.CutPrefix(f.Name, "set:"); ok {
			label = "Setting " + rest
			if set, changes, _ := components.ReadSetting(f.Value); changes {
				value = set
			}
			if value == "" {
				value = "as the agent has it"
			}
		}
		if f.Name == "preset" {
			value = presetTitle(value)
		}
		if label != "" {
			out = append(out, pages.Typed{Field: pages.Field{Name: f.Name, Value: components.Line(value, 200)}, Label: components.Line(label, 120)})
		}
	}
	return out
}

// chosenIn are the fields of a draft by name.
func chosenIn(d *pages.Draft) map[string]string {
	out := map[string]string{}
	for _, f := range d.Fields {
		out[f.Name] = f.Value
	}
	return out
}

func (s *Server) refillMission(c *fiber.Ctx, d *pages.Draft) error {
	chosen := chosenIn(d)
	p := pages.NewSession{Key: newKey(), Workspace: chosen["workspace"], Agent: chosen["agent"], Preset: chosen["preset"], Limits: map[string]string{}, Settings: chosen}
	for _, name := range limitFields {
		p.Limits[name] = chosen[name]
	}
	return s.drawNewSession(c, http.StatusOK, p)
}

func (s *Server) refillAgentSettings(c *fiber.Ctx, d *pages.Draft) error {
	id := strings.TrimSuffix(strings.TrimPrefix(d.Page, "/sessions/"), "/settings")
	return s.drawAgentSettings(c, http.StatusOK, id, pages.AgentSettings{Key: newKey(), Chosen: chosenIn(d)})
}

func (s *Server) refillSettings(c *fiber.Ctx, d *pages.Draft) error {
	chosen := chosenIn(d)
	return s.drawSettings(c, http.StatusOK, store.Preferences{KeysOff: chosen["keys"] == "off", Announce: chosen["announce"], Theme: chosen["theme"]}, nil)
}

func (s *Server) refillCredential(c *fiber.Ctx, d *pages.Draft) error {
	if s.opts.Vault == nil {
		return seeOther(c, "/settings")
	}
	chosen := chosenIn(d)
	return s.drawCredentials(c, http.StatusOK, pages.Credentials{Name: journal.Cut(chosen["name"], 100), Agent: journal.Cut(chosen["agent"], 60), Refused: true})
}

// keepNotice is what a page says first after a sign-in that a form has waited for.
func keepNotice(c *fiber.Ctx, said components.Phrase) components.Phrase {
	if lost, ok := c.Locals(keyNotRecorded).(components.Phrase); ok {
		return lost
	}
	return said
}
