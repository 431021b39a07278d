package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// askedOf is what the answer to a request for permission needs.
type askedOf struct {
	ID      wire.ID                 `json:"id"`
	Options []wire.PermissionOption `json:"options"`
	Tool    told                    `json:"tool"`
}

// nextAsk numbers a request by where it stands in what the process wrote: no other
// has that number, and it has the same when it is read again.
func (s *session) nextAsk() int64 {
	readTo, skip := s.conn.at(s.line)
	return readTo<<27 | skip // a line has at most 64 MiB
}

// answer judges what the agent asked, and tells it what was decided. What waits for
// a person is left open, and the run holds no place meanwhile. An agent that was told
// to stop may do nothing more.
func (s *session) answer(ctx context.Context) error {
	switch {
	case s.ending, s.cancels != "" && len(s.conn.p.Asks()) == 0, s.cancels == "" && s.stopped():
		return nil
	case s.cancels != "":
		return s.conn.say(ctx, s.refuseAll(runner.Commit{}))
	}
	s.waiting = false
	var calls []string
	asks := map[string][]runner.Ask{}
	for _, a := range s.conn.p.Asks() {
		if asks[a.CallID] == nil {
			calls = append(calls, a.CallID)
		}
		asks[a.CallID] = append(asks[a.CallID], a)
	}
	before := s.stood
	s.stood = make(map[string]string, len(calls))
	for _, id := range calls {
		if ctx.Err() != nil { // there may be thousands: whoever comes answers the others
			return context.Cause(ctx)
		}
		open := true
		if now := s.standing(id, asks[id]); now == "" || now != before[id] {
			var err error
			if open, err = s.answerCall(ctx, id, asks[id]); err != nil {
				return err
			}
		}
		if open {
			s.stood[id] = s.standing(id, asks[id])
		}
		s.waiting = s.waiting || open
	}
	s.t.Waits(s.waiting)
	return nil
}

// standing is equal while what an agent asks for a call waits for the same answers: it
// isn't judged again with each line that the agent says meanwhile. "": it must be.
func (s *session) standing(callID string, asks []runner.Ask) string {
	c, requests := s.t.CallByID(callID), s.t.Requests(callID)
	if c == nil || len(requests) == 0 {
		return ""
	}
	slices.Sort(requests)
	var b strings.Builder
	fmt.Fprint(&b, c.State, " ", c.InputSHA256, " ", journal.Hash(string(c.Later)), " ", requests)
	for _, a := range asks {
		fmt.Fprint(&b, " ", a.N)
	}
	return b.String()
}

// answerCall answers all that the agent asks for one call, once all of it is
// decided: it runs when all of it is allowed, and then only (PER-1).
func (s *session) answerCall(ctx context.Context, callID string, asks []runner.Ask) (waits bool, err error) {
	for {
		d, err := s.judge(ctx, callID, asks)
		if err != nil || d.waits {
			return d.waits, err
		}
		err = s.decided(ctx, callID, d)
		if changed, err := s.t.RulesChanged(ctx, err); err != nil || !changed {
			return false, err
		}
		clear(s.stood) // by the rules that there were
	}
}

// decision is what became of all that an agent asks for a call.
type decision struct {
	asks    []runner.Ask
	asked   []askedOf
	waits   bool
	refused bool
	by      journal.AllowedBy // whoever allowed it last
	rules   int64
}

func (s *session) judge(ctx context.Context, callID string, asks []runner.Ask) (decision, error) {
	var d decision
	c, err := s.t.WholeCall(ctx, callID) // once: it may be long
	if err != nil {
		return d, err
	}
	for _, a := range asks {
		var asked askedOf
		if err := json.Unmarshal([]byte(a.Request), &asked); err != nil {
			return d, fmt.Errorf("read what the agent asked: %w", err)
		}
		d.asks, d.asked = append(d.asks, a), append(d.asked, asked)
		if c == nil { // of a turn that has ended
			d.refused = true
			continue
		}
		w := s.wish(asked.Tool, c)
		w.Ask, w.OnceIs, w.RejectIs = a.N, calledBy(asked.Options, wire.AllowOnce), calledBy(asked.Options, wire.RejectOnce)
		p, err := s.t.Permit(ctx, callID, w)
		switch {
		case err != nil:
			return d, err
		case p.Waits:
			d.waits = true
		case p.Allowed == nil:
			d.refused = true
		default:
			d.by, d.rules = *p.Allowed, p.Rules
		}
	}
	d.waits = d.waits && !d.refused
	return d, nil
}

// decided tells the agent what was decided, in the commit of the dispatch if it may run.
func (s *session) decided(ctx context.Context, callID string, d decision) error {
	kind := wire.AllowOnce
	var out runner.Commit
	if d.refused {
		kind = wire.RejectOnce
	} else {
		for _, r := range s.t.Requests(callID) {
			out.Drafts = append(out.Drafts, runner.Seen(&journal.PermissionCancelled{ID: r, Reason: "it needs no answer any more"}))
		}
		out.RulesVersion = d.rules
		out.Drafts = append(out.Drafts, runner.Seen(&journal.CallDispatched{CallID: callID, N: s.t.CallByID(callID).N + 1, AllowedBy: d.by}))
	}
	for i, a := range d.asks {
		frame, err := reply(d.asked[i], kind)
		if err != nil {
			return err
		}
		out.Frames, out.Answered = append(out.Frames, frame), append(out.Answered, a.N)
	}
	first := s.conn.next()
	if err := s.conn.say(ctx, out); err != nil {
		return err
	}
	if !d.refused {
		s.allowed[callID] = first
	}
	if c := s.ours[callID]; c != nil && !d.refused {
		c.runs = true
	}
	return nil
}

// reply is the frame that answers a request: the option of that kind, and never one
// that the agent would remember. If it offers none, or several, which may mean different
// things, the request is cancelled.
func reply(asked askedOf, kind string) ([]byte, error) {
	if o, _, _ := ofKind(asked.Options, kind); o != nil {
		return wire.Result(asked.ID, wire.Selected(o.OptionID))
	}
	return wire.Result(asked.ID, wire.Cancelled())
}

// refuseAll answers all that is open as cancelled, and so nobody is asked about it any
// more. What nobody was asked about yet is settled with that: that it was asked for is
// known only as long as it has no answer.
func (s *session) refuseAll(a runner.Commit) runner.Commit {
	refused := map[string]bool{}
	for _, ask := range s.conn.p.Asks() {
		if !refused[ask.CallID] {
			refused[ask.CallID] = true
			a.Drafts = append(a.Drafts, s.notRun(ask.CallID)...)
		}
		var asked askedOf
		if json.Unmarshal([]byte(ask.Request), &asked) != nil {
			continue
		}
		if frame, err := wire.Result(asked.ID, wire.Cancelled()); err == nil {
			a.Frames = append(a.Frames, frame)
			a.Answered = append(a.Answered, ask.N)
		}
	}
	return a
}

// notRun gives up what people are asked about a call that is not let run.
func (s *session) notRun(id string) []journal.Draft {
	var drafts []journal.Draft
	for _, r := range s.t.Requests(id) {
		drafts = append(drafts, runner.Seen(&journal.PermissionCancelled{ID: r, Reason: s.cancels}))
	}
	if c := s.t.CallByID(id); c != nil && (c.Unasked() || c.LetItself()) {
		drafts = append(drafts, runner.Seen(&journal.CallSettled{CallID: id, State: journal.CallCancelled, Reason: "stopped before it was let run", OutputBytes: c.OutputBytes}))
	}
	return drafts
}

// wish is what a tool call would do, as rules and people see it: what was asked,
// and what the call was called since. All of it is judged, whatever kind the agent
// says that it is.
func (s *session) wish(asked told, c *journal.Call) runner.Wish {
	w := s.wishOf(asked)
	var now told
	if !journal.ReadInput(c.Input, &now) { // what it is besides nobody can tell
		w.Whole = false
		w.Resources = append(w.Resources, policy.Resource{Permission: w.Permission, Value: "what it was said to be, which can’t be read any more", AlwaysAsk: true, Why: "its input is missing from the journal"})
	} else if !same(now, asked) {
		later := s.wishOf(now)
		w.Resources = append(w.Resources, later.Resources...)
		w.Shown, w.Diff, w.Seen, w.Directory, w.Whole = later.Shown, later.Diff, later.Seen, later.Directory, false
	}
	if c.Later != nil {
		w.Whole = false
		w.Resources = append(w.Resources, s.saidSince(c, w.Permission)...)
	}
	w.Resources = each(unseen(w.Resources))
	return w
}

// saidSince is what a call would do that was let run, and is asked for once more, by what its
// agent says of it besides: whatever the rules allow, a person is asked.
func (s *session) saidSince(c *journal.Call, permission string) []policy.Resource {
	const why = "its agent has said something else of it since it was let run"
	var now told
	if !journal.ReadInput(c.Later, &now) {
		return []policy.Resource{{Permission: permission, Value: "what its agent said of it since, which can’t be read any more", AlwaysAsk: true, Why: why}}
	}
	w := s.wishOf(now)
	out := w.Resources
	if len(out) == 0 {
		out = []policy.Resource{{Permission: w.Permission, Value: journal.Cut(w.Shown, mostTitle)}}
	}
	for i := range out {
		out[i].AlwaysAsk, out[i].Why = true, why
	}
	return out
}

// each leaves out what stands there before: a call names a file as its argument, in
// its change, and as its place. What is too much to be shown is one.
func each(all []policy.Resource) []policy.Resource {
	var out []policy.Resource
	seen := map[policy.Resource]bool{}
	for _, r := range all {
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	return runner.Bounded(out)
}

// same reports whether two descriptions of a call say the same of what it does. They may
// be long, and mostly are the very same.
func same(a, b told) bool {
	if a.Title != b.Title || a.Kind != b.Kind || a.Name != b.Name || a.Text != b.Text || !slices.Equal(a.Paths, b.Paths) || !slices.EqualFunc(a.Diffs, b.Diffs, diff.same) {
		return false
	}
	if bytes.Equal(a.Input, b.Input) {
		return true
	}
	x, err1 := journal.Encode(a.Input) // however it is spaced
	y, err2 := journal.Encode(b.Input)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func (d diff) same(e diff) bool {
	return d.Path == e.Path && d.New == e.New && (d.Old == nil) == (e.Old == nil) && (d.Old == nil || *d.Old == *e.Old)
}

func (s *session) wishOf(t told) runner.Wish { return t.wish(s.t.State().Workspace) }

// wish is what a call with this description would do in a workspace.
func (t told) wish(ws string) runner.Wish {
	w := runner.Wish{Permission: policy.PermissionMCP, Shown: t.shown(), Whole: t.onlyCommand()}
	w.Seen = t.see(ws)
	w.Diff = t.changesOver(w.Seen, ws)
	w.Resources = append(w.Resources, t.changed(ws)...)
	command := t.command()
	t.wishToRun(&w, command, ws)
	reads := t.Kind == "read" || t.Kind == "search"
	files := policy.PermissionRead
	switch {
	case slices.Contains([]string{"edit", "delete", "move"}, t.Kind) || t.writes():
		w.Permission, files = policy.PermissionEdit, policy.PermissionEdit
	case len(t.Diffs) > 0:
		files = policy.PermissionEdit
	case t.onlyReads():
		w.Permission = policy.PermissionRead
	case t.Kind == "fetch":
		if u := t.member("url"); u != "" {
			w.Permission = policy.PermissionWeb
			w.Resources = append(w.Resources, webOf(u)...)
		}
	}
	in := t.look(ws, files, w.Permission)
	if !in.places && t.searchesAll() {
		in.place(ws)
		in.places = true
	}
	for _, r := range in.files {
		// Of what neither reads nor changes it is where it works: what lies in the workspace
		// is judged by what is done there.
		if reads || t.changesFiles() || r.Permission == policy.PermissionExternal {
			w.Resources = append(w.Resources, r)
		}
	}
	w.Resources = append(w.Resources, t.unexplained(w.Permission)...)
	if twice := t.givenTwice(w.Permission); len(twice) > 0 {
		w.Whole, w.Resources = false, append(w.Resources, twice...)
	}
	w.Resources = append(w.Resources, in.untold...)
	w.Resources = append(w.Resources, t.untold(w, in.places, command)...)
	w.Resources = runner.Folders(w.Resources, ws, t.Kind == "move")
	return w
}

// changed are the files of a call's changes.
func (t told) changed(ws string) []policy.Resource {
	in := &input{ws: ws, permission: policy.PermissionEdit, asks: policy.PermissionEdit, changes: true, n: -len(t.Diffs)} // they are given anyway
	for _, d := range t.Diffs {
		if d.Path == "" {
			in.untold = append(in.untold, alwaysAsked(policy.PermissionEdit, "a change of a file without a name"))
		}
		in.place(d.Path)
	}
	return append(in.files, in.untold...)
}

// untold is what a call is asked as, or denied, beside what is told of it: as itself, if
// nobody can tell from that what it would do.
func (t told) untold(w runner.Wish, places bool, command string) []policy.Resource {
	asked := func(r policy.Resource) bool { return r.AlwaysAsk || r.Opaque }
	files := t.Kind == "read" || t.Kind == "search" || t.changesFiles()
	itself := policy.Resource{Permission: w.Permission, Value: journal.Cut(t.Title, mostTitle), AlwaysAsk: true, Why: cantTellWhat}
	switch {
	case command != "":
		return nil
	case w.Permission == policy.PermissionMCP:
		return t.asTool(w, itself)
	case places, len(t.Diffs) > 0, len(w.Resources) > 0 && !files, slices.ContainsFunc(w.Resources, asked):
		return nil
	}
	return []policy.Resource{itself}
}

// asTool is what a tool of the agent's is judged as: where it works doesn't tell what it would
// do. If that is judged, or asked, it is there for what rules say of such tools.
func (t told) asTool(w runner.Wish, itself policy.Resource) []policy.Resource {
	there := func(r policy.Resource) bool { return r.Permission == itself.Permission }
	asked := func(r policy.Resource) bool {
		return (r.AlwaysAsk || r.Opaque) && r.Permission != policy.PermissionExternal
	}
	switch {
	case slices.ContainsFunc(w.Resources, there):
		return nil
	case len(t.Diffs) > 0, slices.ContainsFunc(w.Resources, asked):
		itself.Neutral, itself.AlwaysAsk, itself.Why = true, false, ""
	}
	return []policy.Resource{itself}
}

// wishToRun takes what a call would run, and where.
func (t told) wishToRun(w *runner.Wish, command, ws string) {
	dirs, where := t.directories(ws, command != "")
	w.Directory = strings.Join(dirs, " or ")
	switch {
	case command != "":
		w.Permission, w.Shown = policy.PermissionShell, command
		w.Resources = append(w.Resources, commandIn(dirs, command, ws)...)
	case t.Kind == "execute":
		w.Permission = policy.PermissionShell
		w.Resources = append(w.Resources, policy.Resource{Permission: policy.PermissionShell, Value: journal.Cut(t.shown(), mostTitle), Opaque: true, Why: "the agent doesn't say what command it would run"})
	}
	w.Resources = append(append(w.Resources, where...), t.likelyCommands(ws)...)
}

// shown says best what a call is that runs no command: its title, and what it shows
// besides, such as a plan. Of one that runs something it is what its tool was given: the
// title is only what the agent calls it.
func (t told) shown() string {
	if t.titleOnly() {
		return string(t.Input)
	}
	if len(t.Diffs) > 0 {
		return t.Title
	}
	return strings.TrimSpace(t.Title + "\n\n" + t.Text)
}

// Bounds of what is judged and shown of a call, in bytes.
const (
	mostTitle = 4000     // of a name that is a resource
	mostDiff  = 64 << 10 // of its changes, more than is shown
)

// member is a text of the call's input under exactly this name: to take another
// letter case for it would be to judge something else than what the agent runs.
func (t told) member(name string) string { return t.members(name)[0] }

// members are the texts under some names.
func (t told) members(names ...string) []string {
	out := make([]string, len(names))
	t.each(func(key string, v json.RawMessage) {
		if i := slices.Index(names, key); i >= 0 {
			out[i] = wire.Text(v)
		}
	})
	return out
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// webOf are the hosts of an address. A long one is none.
func webOf(address string) []policy.Resource {
	all := policy.WebResources(journal.Cut(address, mostPath))
	for i := range all {
		if len(address) > mostPath {
			all[i].AlwaysAsk, all[i].Why = true, "its address is too long to be read"
		}
		all[i].Value, all[i].Also = journal.Cut(all[i].Value, mostTitle), journal.Cut(all[i].Also, mostTitle)
	}
	return all
}
