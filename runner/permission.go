package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/store"
)

// Bounds of what a request shows in its event; the page reads the call's whole input.
const (
	maxResources = 8 << 10
	maxShown     = 16 << 10
)

// Wish is what a call would do, for rules and for who is asked.
type Wish struct {
	Resources  []policy.Resource
	Permission string // that is asked for if no resource says which
	Shown      string // the command, or what else says it best
	Diff       string // of a file that it would change
	Ask        int64  // which of an agent's requests for the call this is; 0: there is one
}

// wish is what a command would do.
func (t *Turn) wish(in Shell) Wish {
	return Wish{Resources: boundedResources(in.Command, t.fold.State.Workspace), Permission: policy.PermissionShell, Shown: in.Command}
}

// permit decides whether a call may run: by the rules, by a person's answer, or
// not at all. Nil without an error: the call was refused, and is settled.
// ErrParked: a request waits for a person (PER-1). What was allowed when it was
// asked is evaluated again here, when it is executed.
func (t *Turn) permit(ctx context.Context, c *journal.Call, w Wish) (*journal.AllowedBy, error) {
	resources := w.Resources
	rules := make([]policy.Rule, 0, len(t.rules.Rules))
	for _, r := range t.rules.Rules {
		rules = append(rules, policy.Rule{Permission: r.Permission, Pattern: r.Pattern, Action: policy.Action(r.Action)})
	}
	v := policy.Evaluate(policy.Preset(t.rules.Preset), rules, resources)
	if v.Action == policy.Deny {
		return nil, t.deny(ctx, c, v.Denied)
	}
	repeated, err := t.r.store.SameAsUnknown(context.WithoutCancel(ctx), t.run.session, c.Tool, c.InputSHA256)
	if err != nil {
		return nil, err
	}
	if v.Action == policy.Allow && !repeated {
		by := allowedByRule(v.AllowedBy, t.rules.Preset)
		return &by, nil
	}
	groups := v.Asks
	if len(groups) == 0 { // CAL-6: an unknown call's like always asks, whatever the rules allow
		groups = []policy.AskGroup{{Permission: w.Permission, Resources: values(resources), AlwaysAsk: true}}
	}
	return t.answered(ctx, c, w, groups, repeated)
}

// boundedResources are what a command would touch; of one that touches too much
// to be shown, the whole is one resource that is always asked.
func boundedResources(command, workspace string) []policy.Resource {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	resources := realPaths(policy.ShellResources(command, workspace, home), workspace)
	links, all := linksNamed(command, workspace)
	if !all {
		return []policy.Resource{{Permission: "shell", Value: cutEncoded(command, maxResources), Opaque: true}}
	}
	for _, l := range links {
		// A redirect's file is judged already, where it really lies.
		if !slices.ContainsFunc(resources, func(r policy.Resource) bool {
			return !r.Neutral && (r.Value == l.Value || (r.Permission == l.Permission && r.Value == filepath.Dir(l.Value)))
		}) {
			resources = append(resources, l)
		}
	}
	if encodedSize(values(resources)) <= maxResources {
		return resources
	}
	return []policy.Resource{{Permission: "shell", Value: cutEncoded(command, maxResources), Opaque: true}}
}

// CommandResources are what a command of an agent would touch.
func CommandResources(command, workspace string) []policy.Resource {
	return boundedResources(command, workspace)
}

// FileResource is a file that an agent would read or edit, where it really lies: a
// path in the workspace, or what lies outside.
func FileResource(permission, path, workspace string) policy.Resource {
	switch home, err := os.UserHomeDir(); {
	case (path == "~" || strings.HasPrefix(path, "~/")) && err == nil:
		path = filepath.Join(home, path[1:])
	case strings.HasPrefix(path, "~"): // somebody's home, wherever that is
		return policy.Resource{Permission: policy.PermissionExternal, Value: path, AlwaysAsk: true, Why: "it lies in a home folder"}
	case !filepath.IsAbs(path):
		path = filepath.Join(workspace, path)
	}
	resolved := realPath(path, 0)
	rel, err := filepath.Rel(workspace, resolved)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return policy.Resource{Permission: policy.PermissionExternal, Value: filepath.Dir(resolved), AlwaysAsk: true, Why: "it lies outside of the workspace"}
	}
	return policy.Resource{Permission: permission, Value: rel}
}

// encodedSize is what a value takes in an event: the bounds are on that (JRN-6).
func encodedSize(v any) int {
	b, err := journal.Encode(v)
	if err != nil {
		return 1 << 30 // it can't be written at all
	}
	return len(b)
}

// cutEncoded shortens a text until it takes at most n bytes in an event.
func cutEncoded(s string, n int) string {
	for cut := n; cut > 0; cut /= 2 {
		if short := journal.Cut(s, cut); encodedSize(short) <= n {
			return short
		}
	}
	return ""
}

// realPaths resolves the symlinks of the files that a command names: rules are
// about where a file lies, not about what it is called. A link that leads out of
// the workspace makes it another folder's business.
func realPaths(resources []policy.Resource, workspace string) []policy.Resource {
	out := make([]policy.Resource, 0, len(resources))
	for _, r := range resources {
		if (r.Permission == policy.PermissionEdit || r.Permission == policy.PermissionRead) && !r.Opaque && !r.Neutral && !filepath.IsAbs(r.Value) {
			resolved := realPath(filepath.Join(workspace, r.Value), 0)
			rel, err := filepath.Rel(workspace, resolved)
			if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
				out = append(out, policy.Resource{Permission: policy.PermissionExternal, Value: filepath.Dir(resolved), AlwaysAsk: true, Why: "a link leads out of the workspace"})
				continue
			}
			r.Value = rel
		}
		out = append(out, r)
	}
	return out
}

// Bounds of the search for links: past them the command is asked as a whole.
const (
	maxWords   = 2000
	maxFolders = 32
	maxMatches = 1000
)

// linksNamed finds the links that a command may follow: each of its words is
// looked up in the workspace, and in each folder that some of its words lead to
// one after the other, as cd may. A link that leads out reaches outside; one
// that leads elsewhere inside reads that file, under its real name. It may name
// more than the command follows, never less but for what the command computes.
// all is false if there is too much to look at.
func linksNamed(command, workspace string) (found []policy.Resource, all bool) {
	words, ok := policy.Words(command)
	if !ok {
		return nil, true // opaque already
	}
	var names []string
	for _, w := range words {
		names = append(names, append(strings.FieldsFunc(w, func(r rune) bool { return r == '=' || r == ':' || r == ',' }), w)...)
	}
	if len(names) > maxWords {
		return nil, false
	}
	l := links{workspace: workspace, folders: []string{workspace}, seen: map[string]bool{}}
	for i := 0; i < len(l.folders); i++ {
		for _, name := range names {
			matches, ok := matching(l.folders[i], name)
			if !ok {
				return nil, false
			}
			for _, path := range matches {
				l.look(path)
			}
		}
		if len(l.folders) > maxFolders {
			return nil, false
		}
	}
	return l.found, true
}

// links is a search for links, from the workspace on.
type links struct {
	workspace string
	folders   []string // where a word may be looked up
	found     []policy.Resource
	seen      map[string]bool
}

func (l *links) look(path string) {
	if r := throughLink(path, l.workspace); r != nil && !l.seen[r.Permission+r.Value] {
		l.seen[r.Permission+r.Value] = true
		l.found = append(l.found, *r)
	}
	inside := strings.HasPrefix(path, l.workspace+"/")
	if info, err := os.Stat(path); err == nil && info.IsDir() && inside && !slices.Contains(l.folders, path) {
		l.folders = append(l.folders, path)
	}
}

// matching gives the paths that a word may mean in a folder.
func matching(dir, name string) ([]string, bool) {
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(dir, name)
	}
	if !strings.ContainsAny(name, "*?[") {
		return []string{path}, true
	}
	matches, err := filepath.Glob(path)
	return append(matches, path), (err == nil || errors.Is(err, filepath.ErrBadPattern)) && len(matches) <= maxMatches
}

// throughLink says what a path inside of the workspace really reaches, or nil if no link is on its way.
func throughLink(path, workspace string) *policy.Resource {
	if path != workspace && !strings.HasPrefix(path, workspace+"/") {
		return nil
	}
	resolved := realPath(path, 0)
	if resolved == filepath.Clean(path) {
		return nil
	}
	if rel, err := filepath.Rel(workspace, resolved); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return &policy.Resource{Permission: policy.PermissionRead, Value: rel, Why: "a link leads there"}
	}
	return &policy.Resource{Permission: policy.PermissionExternal, Value: resolved, AlwaysAsk: true, Why: "a link leads out of the workspace"}
}

// maxLinks ends a walk through links that lead in a circle: such a path lies nowhere that may be allowed.
const maxLinks = 40

// realPath resolves the part of a path that exists; what doesn't stays as it is named.
func realPath(path string, links int) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	dir := filepath.Dir(path)
	if dir == path || links > maxLinks {
		return "/"
	}
	// A link whose target isn't there yet leads there all the same.
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(realPath(dir, links+1), target)
		}
		return realPath(filepath.Clean(target), links+1)
	}
	return filepath.Join(realPath(dir, links), filepath.Base(path))
}

func values(resources []policy.Resource) []string {
	out := make([]string, 0, len(resources))
	for _, r := range resources {
		out = append(out, r.Value)
	}
	return out
}

func allowedByRule(ds []policy.Decision, preset string) journal.AllowedBy {
	by := journal.AllowedBy{Type: journal.AllowedByPreset, ID: preset, Text: "preset " + preset}
	for _, d := range ds {
		if d.Found && !d.FromPreset {
			return journal.AllowedBy{Type: journal.AllowedByRule, Text: fmt.Sprintf("%s %s: %s", d.Rule.Permission, d.Rule.Pattern, d.Rule.Action)}
		}
		if d.Found {
			by.Text = fmt.Sprintf("%s %s: %s (preset %s)", d.Rule.Permission, d.Rule.Pattern, d.Rule.Action, preset)
		}
	}
	return by
}

// deny settles a call that a rule refuses; its requests can't be answered any more.
func (t *Turn) deny(ctx context.Context, c *journal.Call, denied []policy.Decision) error {
	why := "a rule denies it"
	if len(denied) > 0 {
		d := denied[0]
		why = fmt.Sprintf("denied by the rule %s %s, for %s", d.Rule.Permission, d.Rule.Pattern, d.Resource.Value)
	}
	drafts := append(t.supersede(c.ID, 0, nil, "the rules deny it now"), draft(journal.Server(), &journal.CallSettled{CallID: c.ID, State: journal.CallIsRefused, Reason: journal.Cut(why, 1000)}))
	return t.append(ctx, store.Append{Drafts: drafts})
}

// supersede cancels the pending requests of a call, or of one of an agent's own
// requests for it (0: of all), but for those to keep: what they ask isn't what would
// be run, or nobody needs to answer any more.
func (t *Turn) supersede(callID string, ask int64, keep []string, why string) []journal.Draft {
	var drafts []journal.Draft
	for _, r := range t.fold.Requests(callID) {
		if r.State == journal.RequestPending && !slices.Contains(keep, r.ID) && (ask == 0 || askOf(r) == ask) {
			drafts = append(drafts, draft(journal.Server(), &journal.PermissionCancelled{ID: r.ID, Reason: why}))
		}
	}
	return drafts
}

// askOf tells which of an agent's own requests a request of ours came of.
func askOf(r *journal.Request) int64 {
	var meta requestMetadata
	if json.Unmarshal(r.Metadata, &meta) != nil {
		return 0
	}
	return meta.Ask
}

// answered matches what must be asked with what was answered. All of it allowed
// by a person: the call may run. Something not asked yet: it is asked now, all
// in one transaction.
func (t *Turn) answered(ctx context.Context, c *journal.Call, w Wish, groups []policy.AskGroup, repeated bool) (*journal.AllowedBy, error) {
	var drafts []journal.Draft
	by := journal.AllowedBy{Type: journal.AllowedByPerson}
	var kept []string
	for _, g := range groups {
		digest := digestOf(c, t.fold.State.Workspace, g, w.Ask)
		switch r := t.requestFor(c.ID, g.Permission, digest); {
		case r == nil:
			asked, err := t.ask(c, w, g, digest, repeated)
			if err != nil {
				return nil, err
			}
			drafts = append(drafts, asked)
		case r.State == journal.RequestPending:
			kept = append(kept, r.ID)
		default:
			by.ID, by.Text = r.By, "allowed once, request "+r.ID
		}
	}
	if len(drafts) == 0 && len(kept) == 0 {
		return &by, nil
	}
	drafts = append(t.supersede(c.ID, w.Ask, kept, "what would be run has changed"), drafts...)
	if len(drafts) > 0 {
		if err := t.append(ctx, store.Append{Drafts: drafts}); err != nil {
			return nil, err
		}
	}
	return nil, ErrParked
}

// requestFor finds the request that asks exactly this, pending or allowed.
func (t *Turn) requestFor(callID, permission, digest string) *journal.Request {
	for _, r := range t.fold.Requests(callID) {
		live := r.State == journal.RequestPending || r.State == journal.RequestApprovedOnce
		if live && r.Permission == permission && r.Digest == digest {
			return r
		}
	}
	return nil
}

// digestOf is equal while what would be run is the same.
func digestOf(c *journal.Call, dir string, g policy.AskGroup, ask int64) string {
	parts := []string{c.ID, c.InputSHA256, dir, g.Permission}
	if ask > 0 { // an answer to one of its requests is none to another
		parts = append(parts, fmt.Sprint("ask ", ask))
	}
	return journal.Hash(strings.Join(append(parts, g.Resources...), "\x00"))
}

type requestMetadata struct {
	Tool         string `json:"tool"`
	Command      string `json:"command"`
	CommandBytes int    `json:"command_bytes"`
	Diff         string `json:"diff,omitempty"`
	Ask          int64  `json:"ask,omitempty"`
	Directory    string `json:"directory"`
	RunsAs       string `json:"runs_as"`
	Host         string `json:"host"`
	Effect       string `json:"effect"`
	AlwaysAsks   bool   `json:"always_asks"`
	SameAs       bool   `json:"same_as_unknown"` // the same call has had an unknown outcome
}

func (t *Turn) ask(c *journal.Call, w Wish, g policy.AskGroup, digest string, repeated bool) (journal.Draft, error) {
	meta, err := journal.Encode(requestMetadata{
		Tool: c.Tool, Command: cutEncoded(w.Shown, maxShown), CommandBytes: len(w.Shown), Diff: cutEncoded(w.Diff, maxShown), Ask: w.Ask, Directory: t.fold.State.Workspace,
		RunsAs: runsAs(), Host: t.r.host, Effect: string(c.Effect), AlwaysAsks: g.AlwaysAsk, SameAs: repeated,
	})
	if err != nil {
		return journal.Draft{}, fmt.Errorf("encode what is asked: %w", err)
	}
	return draft(journal.Agent(), &journal.PermissionAsked{
		ID: store.NewID("per"), Tool: journal.ToolRef{CallID: c.ID}, Permission: g.Permission, Resources: g.Resources, Always: []string{},
		Digest: digest, Metadata: json.RawMessage(meta),
	}), nil
}

func runsAs() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
