package pages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"holdfast/journal"
	"holdfast/journal/policy"
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

// SignIn is the page to sign in, by address and password or by a link.
type SignIn struct {
	Frame
	Next  string
	Email string // typed before
	Code  string // of a sign-in link: the page asks once more, since scanners open links too
	Draft *Draft // what was sent after the sign-in had ended
	Ended *EndedSignIn
}

// Draft is a text that was not sent. The form carries it; it is stored nowhere.
type Draft struct {
	Action, Field string // what it was meant for
	For           string // whom its form was drawn for: nobody else is shown it
	Text, Key     string
	Fields        []Field // what goes along
	Again         string  // the label of the form that sends it; "": it is only shown
	Page          string  // where it belongs
}

// The fields by which a form carries a draft.
const (
	DraftField  = "draft"
	DraftAction = "draft_action"
	DraftMore   = "draft_more"
)

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
	return components.Say(p, upper(count(e.Running))+" sessions are still running. Sign in to see them.")
}

// count is a small number as a word.
func count(n int) string {
	words := []string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}
	if n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
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

// Sessions is the list.
type Sessions struct {
	Frame
	Items    []components.Session
	State    string // the filter
	Query    string
	More     string // link to the next page, or ""
	Filtered bool
	Later    bool // not the first page
	Group    string
	Counts   []Count
}

// Here is where this list is, from its first page on.
func (p Sessions) Here() string {
	q := url.Values{}
	for name, value := range map[string]string{"state": p.State, "q": p.Query, "group": p.Group} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}

// Count is a group of sessions with how many there are, and the list of them.
type Count struct {
	Name, Href string
	N          int
	Current    bool
}

// Nothing says that a filter finds nothing, and where to look instead.
func (p Sessions) Nothing() (says components.Phrase, href, label string) {
	switch {
	case p.Query != "" && p.State != "":
		return components.Say("Nothing matches “" + p.Query + "” in " + p.StateLabel() + "."), "/?" + url.Values{"q": {p.Query}}.Encode(), "Search all states"
	case p.Query != "":
		return components.Say("Nothing matches “" + p.Query + "” in any state."), "/", "Show all sessions"
	case p.State != "":
		return components.Say("No session is in the state “" + p.StateLabel() + "”."), "/", "Show all sessions"
	}
	return components.Say("Nothing is here now."), "/", "Show all sessions"
}

// Group is a run of sessions under one heading.
type Group struct {
	Name  components.Group
	Items []components.Session
}

// Groups puts the list under its headings, in the order in which it came.
func (p Sessions) Groups() []Group {
	var out []Group
	for _, s := range p.Items {
		g := s.Group()
		if len(out) == 0 || out[len(out)-1].Name != g {
			out = append(out, Group{Name: g})
		}
		last := &out[len(out)-1]
		last.Items = append(last.Items, s)
	}
	return out
}

// States are the choices of the filter.
func (Sessions) States() []components.Choice {
	out := []components.Choice{{Value: "", Label: "Any"}}
	for _, s := range journal.States() {
		out = append(out, components.Choice{Value: string(s), Label: components.StateWords(s)})
	}
	return out
}

// StateLabel is the filter in words.
func (p Sessions) StateLabel() string {
	if p.State == "" {
		return "any state"
	}
	return components.StateWords(journal.ExecutionState(p.State))
}

// NewSession is the form for a new session, with what was typed before.
type NewSession struct {
	Frame
	Key       string
	Text      string
	KeptAt    int64 // when the text was kept and not sent; 0: it wasn't
	Version   int64 // of the kept text that the form was drawn with; 0: there was none
	Workspace string
	Agent     string
	Preset    string
	Limits    map[string]string // as typed, by the name of the field
	Agents    []components.Agent
	Recent    []string // workspaces that were used last
	Workers   int
}

// LimitFields are the bounds that mean something for the agents that are offered.
func (p NewSession) LimitFields() []components.LimitField {
	model := slices.ContainsFunc(p.Agents, func(a components.Agent) bool { return a.Kind != "builtin" })
	typed := p.Limits["tokens"] != "" || p.Limits["cost_usd"] != "" // such an agent was offered then
	fields := components.LimitFields(model || typed)
	for i := range fields {
		fields[i].Value = p.Limits[fields[i].Name]
	}
	return fields
}

// KeepChoices lets a form that is refused show what was chosen in it, also if that
// isn't offered, any more or ever: it can't be chosen again, and its field says so.
func (p *NewSession) KeepChoices() {
	i := slices.IndexFunc(p.Agents, func(a components.Agent) bool { return a.Name == p.Agent })
	if i < 0 && p.Agent != "" {
		p.Agents = append(p.Agents, components.Agent{Name: p.Agent, Reason: "no server here offers it."})
		i = len(p.Agents) - 1
	}
	switch {
	case p.Agent == "":
		p.blame("agent-0", "Say which agent works.")
	case !p.Agents[i].Available:
		p.blame("agent-0", "The agent "+components.Line(p.Agent, 60)+" can’t be chosen. Choose another one.")
	}
	if p.Preset != "" && !offered(p.Preset) {
		p.blame("preset-0", "There is no preset "+components.Line(p.Preset, 60)+". Choose another one.")
	}
}

// blame says what is wrong with a field, unless that is said already.
func (p *NewSession) blame(field, text string) {
	if !slices.ContainsFunc(p.Problems, func(one components.Problem) bool { return one.Field == field }) {
		p.Problems = append(p.Problems, components.Problem{Field: field, Text: text})
	}
}

// Presets are the choices of permissions, with what each means, and what was chosen
// that is none.
func (p NewSession) Presets() []components.Choice {
	out := offeredPresets()
	if p.Preset != "" && !offered(p.Preset) {
		out = append(out, components.Choice{Value: p.Preset, Label: components.Line(p.Preset, 60), Hint: "Can’t be chosen: there is no such preset."})
	}
	return out
}

func offered(preset string) bool {
	_, known := policy.ParsePreset(preset)
	return known
}

func offeredPresets() []components.Choice {
	return []components.Choice{
		{Value: string(policy.AskAll), Label: policy.AskAll.Title(), Hint: "Nothing runs before you have read it and said yes, not even reading a file."},
		{Value: string(policy.AskWrites), Label: policy.AskWrites.Title(), Hint: "Reading files inside the workspace is allowed, but for those that hold secrets. Every command, every edit and everything outside the workspace is asked."},
		{Value: string(policy.Workspace), Label: policy.Workspace.Title(), Hint: "Edits inside the workspace and a list of known commands run without asking, such as ls, git status, go test, npm test, make check. Everything else is asked. Tests and builds run code of the workspace: this keeps an honest agent from surprises, it is no sandbox."},
	}
}

// Session is the page of one session, on one snapshot.
type Session struct {
	Frame
	S        components.Session
	Requests []components.DecisionCard
	Unknown  []components.UnknownCard
	Attempts []components.AttemptCard
	Entries  []components.Entry
	Window   int64 // ?before of this page; 0: the newest
	Queue    []components.QueuedPrompt
	Composer components.Composer
	Keys     SessionKeys
	Raise    components.RaiseTyped // of a *continue* that was refused
	Trace    components.TraceView

	// The last entry that the viewer had on their screen before they left, and
	// when that was; 0: they were not away, or the marker stands elsewhere.
	AwayAfter, AwaySince int64
	Seen                 int64 // the last entry that is known to have been seen
}

// SessionKeys are the idempotency keys of the page's other forms.
type SessionKeys struct{ Continue, Archive string }

// Locked reports whether the page reloads by itself; then it has no form that text could be lost from.
func (p Session) Locked() bool { return p.Refresh > 0 }

// liveAttributes connect the page to its stream. A page that reloads by itself,
// or that shows an earlier window, has none.
func (p Session) liveAttributes() templ.Attributes {
	if p.Locked() || p.Window != 0 {
		return nil
	}
	return templ.Attributes{
		"id": "live", "hx-ext": "sse", "sse-connect": fmt.Sprintf("%s/stream?after=%d", p.S.Path(), p.S.LastSeq), "sse-close": "gone",
		"data-now": fmt.Sprint(p.S.Now), "data-session": p.S.Path(), "data-seen": fmt.Sprint(p.Seen), "data-announce": p.Announce,
	}
}

// AwayBefore reports whether the viewer left before the first entry of the window.
func (p Session) AwayBefore() bool { return p.AwayAfter > 0 && p.AwayAfter < p.First() }

// First and Last are the seqs of the window; 0 if it is empty.
func (p Session) First() int64 {
	if len(p.Entries) == 0 {
		return 0
	}
	return p.Entries[0].Seq
}

// Last is the seq of the window's last entry.
func (p Session) Last() int64 {
	if len(p.Entries) == 0 {
		return 0
	}
	return p.Entries[len(p.Entries)-1].Seq
}

// NeedsAnything reports whether a card stands above the journal.
func (p Session) NeedsAnything() bool {
	return len(p.Requests)+len(p.Unknown)+len(p.Attempts) > 0 || p.S.State.Blocked != nil
}

// RequestsRest says that more is asked than stands here; nothing if it isn't.
func (p Session) RequestsRest() components.Phrase {
	shown, all := len(p.Requests), len(p.S.State.Pending)
	if all <= shown {
		return nil
	}
	return components.Say(fmt.Sprintf("These are the oldest %d of %s. The others come here as these are answered. What waits over all sessions: ", shown, components.Plural(all, "request")),
		components.Link("/needs-you", "Needs you"), ".")
}

// NothingNeeded is said where no card and no form stands above the journal.
func (p Session) NothingNeeded() string {
	if p.S.State.Needs() == journal.NeedsReview {
		return "Read what it did below; archive it when you are done, or send the next message."
	}
	return "Nothing needs you here."
}

// BlockedOnly reports a block that the owner can't lift by *continue*.
func (p Session) BlockedOnly() bool {
	return p.S.State.Blocked != nil && p.S.State.Blocked.Cause != journal.BlockRecovery
}

// NeedsYou is the inbox.
type NeedsYou struct {
	Frame
	Open    []InboxItem          // oldest first
	Ready   []components.Session // to look at: complete, or ended before that
	Things  int                  // to answer, shown or not
	Rest    []InboxRest          // the kinds of them of which not all are shown
	Running int
	Latest  int64 // when the last entry of those that run was made

	ReadyRest InboxRest
}

// InboxRest says how much of a kind is shown: those that wait longest.
type InboxRest struct {
	What      string
	Shown, Of int
}

// Says tells that not all are shown, and where the others are; nothing if all are.
func (r InboxRest) Says(label, href string) components.Phrase {
	if r.Of <= r.Shown {
		return nil
	}
	return components.Say(fmt.Sprintf("These are the oldest %d of %s. All of them: ", r.Shown, components.Plural(r.Of, r.What)), components.Link(href, label), ".")
}

// Nothing says that nothing needs the viewer.
func (p NeedsYou) Nothing() string {
	text := "Nothing needs you. "
	switch p.Running {
	case 0:
		return text + "No session is running."
	case 1:
		text += "1 session is running"
	default:
		text += components.Plural(p.Running, "session") + " are running"
	}
	return text + "; the latest entry was " + components.Ago(p.Now-p.Latest) + " ago."
}

// InboxItem is one thing that waits for the viewer.
type InboxItem struct {
	Kind    components.Reading // its mark
	Session components.Session
	Since   int64
	Card    *components.DecisionCard // a decision; its form stands here only if its payload fits into the row
	Text    string
	Href    string
	Action  string
}

// Rest says how much more than the row's text there is.
func (i InboxItem) Rest() string {
	if i.Card == nil || components.Lines(i.Card.Payload.Text) < 2 {
		return ""
	}
	return components.Plural(components.Lines(i.Card.Payload.Text), "line")
}

// Apart is what the names of the row's controls have behind their words, so that
// they differ from those of other rows.
func (i InboxItem) Apart() string {
	text := ": " + components.Plain(components.Line(i.Text, 60))
	if i.Card != nil {
		text += strings.Replace(i.Card.Apart(), ": ", ", ", 1)
	}
	return text
}

// Request is one request on its own page.
type Request struct {
	Frame
	S       components.Session
	Card    components.DecisionCard
	Call    *journal.Call
	Entries []components.Entry // the last ones
}

// Answered says what became of a request that isn't pending any more.
func (p Request) Answered() components.Phrase {
	r := p.Card.Request
	switch {
	case r.State == journal.RequestPending:
		return nil
	case r.Ended():
		return components.Say("This request ended without an answer: " + orWord(r.Reason, string(r.State)) + ". Nothing was run because of it.")
	}
	did := "denied this"
	if r.Reply != journal.ReplyReject {
		did = "allowed this once"
	}
	who := p.Viewer.Who(r.By)
	return components.Say(upper(who)+" "+did+" at ", components.AtSecond(r.At), ".")
}

// Call is one call on its own page.
type Call struct {
	Frame
	S       components.Session
	Call    *journal.Call
	Payload components.Payload
	Card    *components.UnknownCard // nil: nothing is asked of it
	Facts   []components.CallFact
	Output  components.Output
	Binary  bool // its output isn't text
	Entries []components.Entry
}

// Name is the call in one line.
func (p Call) Name() string { return components.NewCallTitle(p.Call.Tool, p.Payload) }

func (p Call) download() string { return components.CallPath(p.Call.ID) + "/output?download=1" }

// CallOutput is one page of a call's output.
type CallOutput struct {
	Frame
	S      components.Session
	Call   *journal.Call
	Text   string
	Binary bool
	Offset int64
	Next   int64 // 0: this is the end
	Total  int64
}

// Name is the call in one line.
func (p CallOutput) Name() string {
	return components.NewCallTitle(p.Call.Tool, components.CallPayload(p.Call))
}

// Range says which bytes the page shows.
func (p CallOutput) Range() string {
	end := p.Next
	if end == 0 {
		end = p.Total
	}
	return fmt.Sprintf("Bytes %d to %d of %d", p.Offset, end, p.Total)
}

// Help is the page of words.
type Help struct{ Frame }

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

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

func upper(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}
