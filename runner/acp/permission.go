package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
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

func (s *session) nextAsk() int64 {
	n := int64(0)
	for _, a := range append(s.conn.p.Asks(), s.asks...) {
		n = max(n, a.N)
	}
	return n + 1
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
	waits := false
	for _, a := range s.conn.p.Asks() {
		open, err := s.answerOne(ctx, a)
		if err != nil {
			return err
		}
		waits = waits || open
	}
	s.t.Waits(waits)
	return nil
}

func (s *session) answerOne(ctx context.Context, a runner.Ask) (waits bool, err error) {
	var asked askedOf
	if err := json.Unmarshal([]byte(a.Request), &asked); err != nil {
		return false, fmt.Errorf("read what the agent asked: %w", err)
	}
	for {
		p, err := s.t.Permit(ctx, a.CallID, s.wish(asked.Tool))
		if err != nil || p.Waits {
			return p.Waits, err
		}
		err = s.decided(ctx, a, asked, p)
		if changed, err := s.t.RulesChanged(ctx, err); err != nil || !changed {
			return false, err
		}
	}
}

// decided tells the agent what was decided, in the commit of the dispatch if it may run.
func (s *session) decided(ctx context.Context, a runner.Ask, asked askedOf, p runner.Permission) error {
	kind := wire.RejectOnce
	out := runner.Commit{Answered: []int64{a.N}}
	if p.Allowed != nil {
		kind = wire.AllowOnce
		c := s.t.CallByID(a.CallID)
		out.RulesVersion = p.Rules
		out.Drafts = []journal.Draft{runner.Seen(&journal.CallDispatched{CallID: a.CallID, N: c.N + 1, AllowedBy: *p.Allowed})}
		for _, r := range s.t.Requests(a.CallID) {
			out.Drafts = append([]journal.Draft{runner.Seen(&journal.PermissionCancelled{ID: r, Reason: "it needs no answer any more"})}, out.Drafts...)
		}
	}
	frame, err := reply(asked, kind)
	if err != nil {
		return err
	}
	out.Frames = [][]byte{frame}
	if err := s.conn.say(ctx, out); err != nil {
		return err
	}
	for _, c := range s.tools {
		if c.id == a.CallID {
			c.runs = p.Allowed != nil
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

// wish is what a tool call would do, as rules and people see it.
func (s *session) wish(t told) runner.Wish {
	ws := s.t.State().Workspace
	w := runner.Wish{Permission: policy.PermissionMCP, Shown: t.Title}
	var in struct {
		Command  any    `json:"command"`
		FilePath string `json:"file_path"`
		Path     string `json:"path"`
		URL      string `json:"url"`
	}
	_ = json.Unmarshal(t.Input, &in) // what isn't there is empty
	for _, d := range t.Diffs {
		w.Diff += unified(d, ws)
	}
	switch command, isText := in.Command.(string); {
	case t.Kind == "execute" && isText && command != "":
		w.Permission, w.Shown = policy.PermissionShell, command
		w.Resources = runner.CommandResources(command, ws)
	case t.Kind == "execute":
		w.Permission = policy.PermissionShell
		w.Resources = []policy.Resource{{Permission: policy.PermissionShell, Value: journal.Cut(t.Title, 4000), Opaque: true}}
	case t.Kind == "edit" || t.Kind == "delete" || t.Kind == "move" || t.Kind == "read" || t.Kind == "search":
		w.Permission = policy.PermissionEdit
		if t.Kind == "read" || t.Kind == "search" {
			w.Permission = policy.PermissionRead
		}
		w.Resources = paths(t, in.FilePath, in.Path, ws, w.Permission)
	case t.Kind == "fetch" && in.URL != "":
		w.Permission = policy.PermissionWeb
		w.Resources = []policy.Resource{{Permission: policy.PermissionWeb, Value: host(in.URL)}}
	}
	if len(w.Resources) == 0 { // nobody can tell what it would do
		w.Resources = []policy.Resource{{Permission: w.Permission, Value: journal.Cut(t.Title, 4000), AlwaysAsk: true}}
	}
	return w
}

// paths are the files that a call would touch, each once.
func paths(t told, filePath, path, workspace, permission string) []policy.Resource {
	var out []policy.Resource
	seen := map[string]bool{}
	list := append([]string{filePath, path}, t.Paths...)
	for _, d := range t.Diffs {
		list = append(list, d.Path)
	}
	for _, p := range list {
		if p == "" {
			continue
		}
		if filepath.IsAbs(p) {
			p = filepath.Clean(p)
		}
		r := runner.FileResource(permission, p, workspace)
		if !seen[r.Permission+r.Value] {
			seen[r.Permission+r.Value] = true
			out = append(out, r)
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
