package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
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
	case s.ending, s.cancels && len(s.conn.p.Asks()) == 0:
		return nil
	case s.cancels:
		return s.conn.say(ctx, s.refuseAll(runner.Commit{}))
	}
	s.waiting = false
	var calls []string
	for _, a := range s.conn.p.Asks() {
		if !slices.Contains(calls, a.CallID) {
			calls = append(calls, a.CallID)
		}
	}
	for _, id := range calls {
		open, err := s.answerCall(ctx, id)
		if err != nil {
			return err
		}
		s.waiting = s.waiting || open
	}
	s.t.Waits(s.waiting)
	return nil
}

// answerCall answers all that the agent asks for one call, once all of it is
// decided: it runs when all of it is allowed, and then only (PER-1).
func (s *session) answerCall(ctx context.Context, callID string) (waits bool, err error) {
	for {
		d, err := s.judge(ctx, callID)
		if err != nil || d.waits {
			return d.waits, err
		}
		err = s.decided(ctx, callID, d)
		if changed, err := s.t.RulesChanged(ctx, err); err != nil || !changed {
			return false, err
		}
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

func (s *session) judge(ctx context.Context, callID string) (decision, error) {
	var d decision
	for _, a := range s.conn.p.Asks() {
		if a.CallID != callID {
			continue
		}
		var asked askedOf
		if err := json.Unmarshal([]byte(a.Request), &asked); err != nil {
			return d, fmt.Errorf("read what the agent asked: %w", err)
		}
		d.asks, d.asked = append(d.asks, a), append(d.asked, asked)
		c := s.t.CallByID(callID)
		if c == nil { // of a turn that has ended
			d.refused = true
			continue
		}
		w := s.wish(asked.Tool, c)
		w.Ask = a.N
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
	if err := s.conn.say(ctx, out); err != nil {
		return err
	}
	for _, c := range s.tools {
		if c.id == callID {
			c.runs = !d.refused
		}
	}
	return nil
}

// reply is the frame that answers a request: the option of that kind, and never one
// that the agent would remember. If it offers none, the request is cancelled.
func reply(asked askedOf, kind string) ([]byte, error) {
	for _, o := range asked.Options {
		if o.Kind == kind {
			return wire.Result(asked.ID, wire.Selected(o.OptionID))
		}
	}
	return wire.Result(asked.ID, wire.Cancelled())
}

// refuseAll answers all that is open as cancelled.
func (s *session) refuseAll(a runner.Commit) runner.Commit {
	for _, ask := range s.conn.p.Asks() {
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

// wish is what a tool call would do, as rules and people see it: what was asked,
// and what the call was called since. All of it is judged, whatever kind the agent
// says that it is.
func (s *session) wish(asked told, c *journal.Call) runner.Wish {
	w := s.wishOf(asked)
	var now told
	if json.Unmarshal(c.Input, &now) == nil && !same(now, asked) {
		later := s.wishOf(now)
		w.Resources = append(w.Resources, later.Resources...)
		w.Shown, w.Diff = later.Shown, later.Diff
	}
	w.Resources = each(w.Resources)
	return w
}

// each leaves out what stands there before: a call names a file as its argument, in
// its change, and as its place.
func each(all []policy.Resource) []policy.Resource {
	var out []policy.Resource
	for _, r := range all {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// same reports whether two descriptions of a call say the same of what it does.
func same(a, b told) bool {
	x, err1 := journal.Encode(a)
	y, err2 := journal.Encode(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func (s *session) wishOf(t told) runner.Wish {
	ws := s.t.State().Workspace
	w := runner.Wish{Permission: policy.PermissionMCP, Shown: t.Title}
	for _, d := range t.Diffs {
		w.Diff += unified(d, ws)
		w.Resources = append(w.Resources, runner.FileResource(policy.PermissionEdit, d.Path, ws))
	}
	command, dir := t.member("command"), cmp.Or(t.member("workdir"), t.member("cwd"))
	switch {
	case command != "":
		w.Permission, w.Shown = policy.PermissionShell, command
		if dir != "" && filepath.Clean(dir) != ws {
			w.Shown = "cd " + quoted(dir) + " && " + command
		}
		w.Resources = append(w.Resources, runner.CommandResources(w.Shown, ws)...)
	case t.Kind == "execute":
		w.Permission = policy.PermissionShell
		w.Resources = append(w.Resources, policy.Resource{Permission: policy.PermissionShell, Value: journal.Cut(t.Title, 4000), Opaque: true})
	}
	switch t.Kind {
	case "edit", "delete", "move":
		w.Permission = policy.PermissionEdit
		w.Resources = append(w.Resources, paths(t, ws, policy.PermissionEdit)...)
	case "read", "search":
		w.Permission = policy.PermissionRead
		w.Resources = append(w.Resources, paths(t, ws, policy.PermissionRead)...)
	case "fetch":
		if u := t.member("url"); u != "" {
			w.Permission = policy.PermissionWeb
			w.Resources = append(w.Resources, policy.Resource{Permission: policy.PermissionWeb, Value: host(u)})
		}
	default: // where it works: what lies in the workspace is judged by what is done there
		for _, r := range paths(t, ws, policy.PermissionRead) {
			if r.Permission == policy.PermissionExternal {
				w.Resources = append(w.Resources, r)
			}
		}
	}
	if len(w.Resources) == 0 { // nobody can tell what it would do
		w.Resources = []policy.Resource{{Permission: w.Permission, Value: journal.Cut(t.Title, 4000), AlwaysAsk: true}}
	}
	return w
}

// member is a text of the call's input under exactly this name: to take another
// letter case for it would be to judge something else than what the agent runs.
func (t told) member(name string) string {
	var in map[string]json.RawMessage
	text := ""
	if json.Unmarshal(t.Input, &in) != nil || json.Unmarshal(in[name], &text) != nil {
		return ""
	}
	return text
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// paths are the files that a call names.
func paths(t told, workspace, permission string) []policy.Resource {
	var out []policy.Resource
	list := append([]string{t.member("file_path"), t.member("filePath"), t.member("path")}, t.Paths...)
	for _, p := range list {
		if p != "" {
			out = append(out, runner.FileResource(permission, p, workspace))
		}
	}
	return out
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	return u.Host
}

// unified shows a change for people; nothing applies it.
func unified(d diff, workspace string) string {
	var b strings.Builder
	name := relative(d.Path, workspace)
	old := "/dev/null"
	if d.Old != nil {
		old = name
	}
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", old, name)
	var before []string
	if d.Old != nil {
		before = lines(*d.Old)
	}
	after := lines(d.New)
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	last := 0
	for last < len(before)-head && last < len(after)-head && before[len(before)-1-last] == after[len(after)-1-last] {
		last++
	}
	const around = 3
	for _, l := range before[max(0, head-around):head] {
		b.WriteString("  " + l + "\n")
	}
	for _, l := range before[head : len(before)-last] {
		b.WriteString("- " + l + "\n")
	}
	for _, l := range after[head : len(after)-last] {
		b.WriteString("+ " + l + "\n")
	}
	for _, l := range after[len(after)-last : len(after)-last+min(around, last)] {
		b.WriteString("  " + l + "\n")
	}
	return b.String()
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
