package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	Directory  string // where it would run; "": in the workspace
	Whole      bool   // Shown says all that an agent has told of its call
	Seen       []SeenFile
	Ask        int64 // which of an agent's requests for the call this is; 0: there is one

	OnceIs, RejectIs string // what its agent calls the answers that it is given; "": what they are
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
	resources := w.judged()
	rules := make([]policy.Rule, 0, len(t.rules.Rules))
	for _, r := range t.rules.Rules {
		rules = append(rules, policy.Rule{Permission: r.Permission, Pattern: r.Pattern, Action: policy.Action(r.Action)})
	}
	v := policy.Evaluate(policy.Preset(t.rules.Preset), rules, resources)
	if v.Action == policy.Deny {
		return nil, t.deny(ctx, c, w, v.Denied)
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
	if len(groups) == 0 { // the rules allow it, but an unknown call's like always asks (CAL-6)
		groups = []policy.AskGroup{{Permission: w.Permission, Resources: values(resources), AlwaysAsk: true, Why: []string{"the same call was started before and its outcome was lost"}}}
	}
	return t.answered(ctx, c, w, groups, repeated)
}

// judged is what rules judge of a call. One that names nothing is judged by what it is called,
// and always asked, unless a rule denies it.
func (w Wish) judged() []policy.Resource {
	if len(w.Resources) > 0 {
		return w.Resources
	}
	return []policy.Resource{{Permission: w.Permission, Value: cutEncoded(w.Shown, maxResources), AlwaysAsk: true, Why: "nobody can tell what it would do"}}
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
		return []policy.Resource{{Permission: "shell", Value: cutEncoded(command, maxResources), Opaque: true, Why: "it has more words than the server looks up as file names"}}
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
	return []policy.Resource{{Permission: "shell", Value: cutEncoded(command, maxResources), Opaque: true, Why: "it touches more than can be shown"}}
}

// CommandResources are what a command of an agent would touch.
func CommandResources(command, workspace string) []policy.Resource {
	return boundedResources(command, workspace)
}

// mostAsked bounds what one request names, in bytes of its event. With the command, the
// change and what was seen of files it has room there (JRN-6).
const mostAsked = 2 * maxResources

// Bounded joins those of an agent's resources that are too many, or too long, to be shown
// in one request: what is judged is what people are shown, so of the rest it is always
// asked, as of a command that touches too much.
func Bounded(resources []policy.Resource) []policy.Resource {
	room := mostAsked
	for i, r := range resources {
		if room -= encodedSize(r.Value) + 1; room >= 0 {
			continue
		}
		out, more := slices.Clone(resources[:i]), map[string]int{}
		for _, r := range resources[i:] {
			more[r.Permission]++
		}
		for _, p := range slices.Sorted(maps.Keys(more)) {
			out = append(out, policy.Resource{Permission: p, Value: fmt.Sprintf("and %d more", more[p]), AlwaysAsk: true, Why: "it is more than can be shown"})
		}
		return out
	}
	return resources
}

// maxPath is more bytes than the name of any file has for the system.
const maxPath = 8 << 10

// FileResource is a file that an agent would read or edit, where it really lies: a
// path in the workspace, or what lies outside.
func FileResource(permission, path, workspace string) policy.Resource {
	if len(path) > maxPath { // there is no such file
		return policy.Resource{Permission: permission, Value: journal.Cut(path, 1000), AlwaysAsk: true, Why: "it is too long for the name of a file"}
	}
	switch home, err := os.UserHomeDir(); {
	case (path == "~" || strings.HasPrefix(path, "~/")) && err == nil:
		path = filepath.Join(home, path[1:])
	case strings.HasPrefix(path, "~"): // somebody's home, wherever that is
		return policy.Resource{Permission: policy.PermissionExternal, Value: path, AlwaysAsk: true, Why: "it lies in a home folder"}
	case !filepath.IsAbs(path):
		path = workspace + "/" + path
	}
	if up, is := UpFromLink(path); is {
		return up
	}
	resolved := realPath(filepath.Clean(path), 0)
	rel, err := filepath.Rel(workspace, resolved)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return policy.Resource{Permission: policy.PermissionExternal, Value: filepath.Dir(resolved), AlwaysAsk: true, Why: "it lies outside of the workspace"}
	}
	return policy.Resource{Permission: permission, Value: rel}
}

// FolderOutside is the folder that a path names, if it is one that is there.
func FolderOutside(path, workspace string) (string, bool) {
	home, err := os.UserHomeDir()
	switch {
	case len(path) > maxPath || strings.HasPrefix(path, "~") && err != nil:
		return "", false
	case path == "~" || strings.HasPrefix(path, "~/"):
		path = filepath.Join(home, path[1:])
	case !filepath.IsAbs(path):
		path = workspace + "/" + path
	}
	info, err := os.Stat(path)
	return realPath(filepath.Clean(path), 0), err == nil && info.IsDir()
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
func (t *Turn) deny(ctx context.Context, c *journal.Call, w Wish, denied []policy.Decision) error {
	why := "a rule denies it"
	if len(denied) > 0 {
		d := denied[0]
		why = fmt.Sprintf("denied by the rule %s %s, for %s", d.Rule.Permission, d.Rule.Pattern, d.Resource.Value)
	}
	drafts := t.supersede(c.ID, 0, nil, "the rules deny it now")
	if c.Began() && !c.LetItself() { // what it asks now is refused: whether it ran before nobody knows
		return t.denyOnceMore(ctx, c, w, denied, why, drafts)
	}
	drafts = append(drafts, draft(journal.Server(), &journal.CallSettled{CallID: c.ID, State: journal.CallIsRefused, Reason: journal.Cut(why, 1000)}))
	return t.append(ctx, store.Append{Drafts: drafts})
}

// denyOnceMore refuses what is asked once more of a call that was let run, and goes on: the
// request is what tells of it. ended are those of it that waited.
func (t *Turn) denyOnceMore(ctx context.Context, c *journal.Call, w Wish, denied []policy.Decision, why string, ended []journal.Draft) error {
	told := slices.ContainsFunc(t.fold.Requests(c.ID), func(r *journal.Request) bool {
		return r.State == journal.RequestCancelled && askOf(r) == w.Ask
	})
	if len(ended) == 0 && !told && len(denied) > 0 {
		g := policy.AskGroup{Permission: denied[0].Resource.Permission}
		for _, d := range denied {
			if d.Resource.Permission == g.Permission {
				g.Resources = append(g.Resources, d.Resource.Value)
			}
		}
		asked, err := t.ask(c, w, g, digestOf(c, t.fold.State.Workspace, g, w), false)
		if err != nil {
			return err
		}
		ended = []journal.Draft{asked, draft(journal.Server(), &journal.PermissionCancelled{ID: asked.Body.(*journal.PermissionAsked).ID, Reason: journal.Cut(why, 1000)})}
	}
	if len(ended) == 0 {
		return nil
	}
	return t.append(ctx, store.Append{Drafts: ended})
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
		digest := digestOf(c, t.fold.State.Workspace, g, w)
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
func digestOf(c *journal.Call, dir string, g policy.AskGroup, w Wish) string {
	parts := []string{c.ID, c.InputSHA256, dir, g.Permission}
	if w.Ask > 0 { // an answer to one of its requests is none to another
		parts = append(parts, fmt.Sprint("ask ", w.Ask))
	}
	if c.Later != nil {
		parts = append(parts, "later "+journal.Hash(string(c.Later)))
	}
	parts = append(parts, seenPart(w.Seen)...)
	return journal.Hash(strings.Join(append(parts, g.Resources...), "\x00"))
}

type requestMetadata struct {
	Tool         string     `json:"tool"`
	Command      string     `json:"command"`
	CommandBytes int        `json:"command_bytes"`
	Diff         string     `json:"diff,omitempty"`
	Seen         []SeenFile `json:"seen,omitempty"`
	Ask          int64      `json:"ask,omitempty"`
	Whole        bool       `json:"whole,omitempty"`
	InputSHA256  string     `json:"input_sha256,omitempty"` // of the call's input as it was asked
	Directory    string     `json:"directory"`
	RunsAs       string     `json:"runs_as"`
	Host         string     `json:"host"`
	Effect       string     `json:"effect"`
	AlwaysAsks   bool       `json:"always_asks"`
	AsksWhy      []string   `json:"asks_why,omitempty"`    // in words for people
	SameAs       bool       `json:"same_as_unknown"`       // the same call has had an unknown outcome
	OnceIs       string     `json:"once_is,omitempty"`     // what the agent calls the answer that allows it, if not so
	RejectIs     string     `json:"reject_is,omitempty"`   // and the one that denies it
	AskedAgain   string     `json:"asked_again,omitempty"` // why it is, in words for people; "": it is asked for the first time
}

func (t *Turn) ask(c *journal.Call, w Wish, g policy.AskGroup, digest string, repeated bool) (journal.Draft, error) {
	meta, err := journal.Encode(requestMetadata{
		Tool: c.Tool, Command: cutEncoded(w.Shown, maxShown), CommandBytes: len(w.Shown), Diff: cutEncoded(w.Diff, maxShown), Seen: w.Seen, Ask: w.Ask, Whole: w.Whole, InputSHA256: c.InputSHA256, Directory: cmp.Or(cutEncoded(w.Directory, maxPath), t.fold.State.Workspace),
		RunsAs: runsAs(), Host: t.r.host, Effect: string(c.Effect), AlwaysAsks: g.AlwaysAsk, AsksWhy: reasons(g.Why), SameAs: repeated,
		AskedAgain: t.askedAgain(c, g.Permission, w), OnceIs: w.OnceIs, RejectIs: w.RejectIs,
	})
	if err != nil {
		return journal.Draft{}, fmt.Errorf("encode what is asked: %w", err)
	}
	return draft(journal.Agent(), &journal.PermissionAsked{
		ID: store.NewID("per"), Tool: journal.ToolRef{CallID: c.ID}, Permission: g.Permission, Resources: g.Resources, Always: []string{},
		Digest: digest, Metadata: json.RawMessage(meta),
	}), nil
}

// mostReasons are told why a request is asked: more say nothing more.
const mostReasons = 4

// reasons bounds what a request says of why it is asked: a reason may name what it found.
func reasons(why []string) []string {
	var out []string
	for _, w := range why[:min(len(why), mostReasons)] {
		out = append(out, journal.Cut(w, 200))
	}
	return out
}

func runsAs() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
