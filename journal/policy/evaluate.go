package policy

import (
	"slices"
	"strings"
)

// Verdict is the outcome for a whole call.
type Verdict struct {
	Action    Action
	Asks      []AskGroup // when Action is Ask: what must be asked, by permission
	Denied    []Decision // which rule denied what
	AllowedBy []Decision // when Action is Allow: which rule allowed each resource
}

// AskGroup is what one permission request would ask for.
type AskGroup struct {
	Permission string
	Resources  []string
	AlwaysAsk  bool // one of them is opaque or on the floor: never remembered
	// Why says in plain words why it is asked although rules may allow it, each reason
	// once: of AlwaysAsk those of what is always asked, else of what a preset's allow
	// doesn't count for. Empty if no rule allows it.
	Why []string
}

// Decision is how one resource was judged.
type Decision struct {
	Resource   Resource
	Rule       Rule // the rule that decided, if Found
	FromPreset bool // it is one of the preset's
	Found      bool // false: no rule matched
}

// Evaluate judges a call by the rules of the preset followed by those of the
// session: for each resource the last rule that matches, ask if none does; of
// all resources the strictest. Opaque and always-asked resources are never
// allowed; a rule that denies them does. A preset's allow doesn't count for an
// unproven resource.
//
// A call of which nothing is known, an empty list, is Ask without a group: the
// caller asks with what it knows. A call that is neutral throughout (cd sub)
// is allowed by every preset but AskAll, unless a rule of the session says
// otherwise.
func Evaluate(preset Preset, rules []Rule, resources []Resource) Verdict {
	if len(resources) == 0 {
		return Verdict{Action: Ask}
	}
	preset = known(preset)
	own := preset.Rules()
	e := evaluation{preset: preset, rules: append(own, rules...), own: len(own), idle: true}
	for _, r := range resources {
		e.idle = e.idle && r.Neutral
	}
	v := Verdict{Action: Allow}
	for _, r := range resources {
		action, d := e.judge(r)
		switch action {
		case Deny:
			v.Denied = append(v.Denied, d)
		case Allow:
			v.AllowedBy = append(v.AllowedBy, d)
		default:
			v.Asks = ask(v.Asks, d)
		}
		v.Action = stricter(v.Action, action)
		if r.Folder && action != Deny {
			e.below(&v, r, action)
		}
	}
	return tidy(v, resources)
}

func known(p Preset) Preset {
	if _, ok := ParsePreset(string(p)); !ok {
		return AskAll
	}
	return p
}

// tidy leaves only what belongs to the action. A shell text that is asked as a
// whole isn't asked in parts too.
func tidy(v Verdict, resources []Resource) Verdict {
	if v.Action != Allow {
		v.AllowedBy = nil
	}
	if v.Action != Ask {
		v.Asks = nil
	}
	for i, g := range v.Asks {
		for _, r := range resources {
			if r.Opaque && r.Permission == PermissionShell && g.Permission == PermissionShell {
				v.Asks[i].Resources = []string{r.Value}
				break
			}
		}
	}
	return v
}

// ask adds what was judged to its permission's group.
func ask(groups []AskGroup, d Decision) []AskGroup {
	i := slices.IndexFunc(groups, func(g AskGroup) bool { return g.Permission == d.Resource.Permission })
	if i < 0 {
		i, groups = len(groups), append(groups, AskGroup{Permission: d.Resource.Permission})
	}
	groups[i].add(d)
	return groups
}

// add takes one more resource into the group.
func (g *AskGroup) add(d Decision) {
	r := d.Resource
	g.Resources = append(g.Resources, r.Value)
	always := r.Opaque || r.AlwaysAsk || floorValue(r)
	switch why := r.why(); {
	case always && !g.AlwaysAsk: // what weighs less says nothing beside it
		g.AlwaysAsk, g.Why = true, []string{why}
	case slices.Contains(g.Why, why):
	case always, !g.AlwaysAsk && r.Could != "" && isFile(r), !g.AlwaysAsk && (r.Unproven || r.Partly) && d.FromPreset && d.Rule.Action == Allow:
		g.Why = append(g.Why, why)
	}
}

// why is the reason of a resource, whoever made it.
func (r Resource) why() string {
	switch {
	case r.Why != "":
		return r.Why
	case floorValue(r):
		return onTheFloor
	}
	return "nobody can tell what it would do"
}

// floorValue holds the floor for resources that were not made by this package.
func floorValue(r Resource) bool {
	return r.Permission == PermissionExternal && onFloor(r.Value, "")
}

// evaluation is one ruleset at work.
type evaluation struct {
	preset Preset
	rules  []Rule
	own    int  // how many of the rules are the preset's
	idle   bool // the whole call is neutral
}

func (e evaluation) judge(r Resource) (Action, Decision) {
	if r.Neutral {
		return e.neutral(r)
	}
	action, at := e.last(r)
	d := e.decision(r, at)
	if action != Allow {
		return action, d
	}
	switch {
	case r.Opaque, r.AlwaysAsk, floorValue(r):
		return Ask, d
	case (r.Unproven || r.Partly) && d.FromPreset:
		return Ask, d
	}
	return Allow, d
}

// last returns the action of the last rule that matches, or of a later one
// that catches the command in its second reading or in what it may become.
func (e evaluation) last(r Resource) (Action, int) {
	at := lastMatch(e.rules, 0, r.Permission, r.Value)
	action := e.action(at)
	if lower := strings.ToLower(r.Value); at >= 0 && at < e.own && action == Allow && lower != r.Value && isFile(r) {
		// .GIT/config is .git/config where a file system ignores case.
		at = lastMatch(e.rules[:e.own], 0, r.Permission, lower)
		action = e.action(at)
	}
	if isFile(r) && r.Could != "" && action == Allow {
		return e.could(r, at)
	}
	if r.Permission != PermissionShell && r.Permission != PermissionWeb || action == Deny {
		return action, at
	}
	if r.Also != "" {
		if later := lastMatch(e.rules, at+1, r.Permission, r.Also); later >= 0 && e.action(later) != Allow {
			if e.action(later) == Deny || action == Allow {
				action, at = e.action(later), later
			}
		}
	}
	if r.Could == "" || action != Allow {
		return action, at
	}
	// The preset's own asks are what prove looks for, more exactly.
	for i := max(at+1, e.own); i < len(e.rules); i++ {
		rule := e.rules[i]
		if rule.Permission == r.Permission && e.action(i) != Allow && overlaps(rule.Pattern, r.Could) {
			return Ask, i
		}
	}
	return action, at
}

// could finds a rule, behind the one that allows a pattern of files' names, that asks for or
// denies what it may name: then it is asked.
func (e evaluation) could(r Resource, at int) (Action, int) {
	for i := at + 1; i < len(e.rules); i++ {
		rule := e.rules[i]
		if rule.Permission != r.Permission || e.action(i) == Allow {
			continue
		}
		if overlaps(rule.Pattern, r.Could) || i < e.own && overlaps(rule.Pattern, strings.ToLower(r.Could)) {
			return Ask, i
		}
	}
	return Allow, at
}

// action of a rule; none, or one that isn't known, asks.
func (e evaluation) action(at int) Action {
	if at < 0 {
		return Ask
	}
	switch a := e.rules[at].Action; a {
	case Allow, Deny:
		return a
	default:
		return Ask
	}
}

// neutral judges what only the session's own rules may object to.
func (e evaluation) neutral(r Resource) (Action, Decision) {
	if r.Permission == PermissionShell && !e.idle {
		return Allow, e.decision(r, -1)
	}
	at := lastMatch(e.rules, e.own, r.Permission, r.Value)
	switch {
	case at >= 0:
		return e.action(at), e.decision(r, at)
	case e.idle && e.preset == AskAll:
		return Ask, e.decision(r, -1)
	default:
		return Allow, e.decision(r, -1)
	}
}

func (e evaluation) decision(r Resource, at int) Decision {
	if at < 0 {
		return Decision{Resource: r}
	}
	return Decision{Resource: r, Rule: e.rules[at], FromPreset: at < e.own, Found: true}
}

func isFile(r Resource) bool {
	return r.Permission == PermissionRead || r.Permission == PermissionEdit
}

// lastMatch returns the index of the last rule from from on that matches, -1
// if none does.
func lastMatch(rules []Rule, from int, permission, value string) int {
	for i := len(rules) - 1; i >= from; i-- {
		if rules[i].matches(permission, value) {
			return i
		}
	}
	return -1
}

// stricter returns the stricter of two actions.
func stricter(a, b Action) Action {
	rank := func(x Action) int {
		switch x {
		case Deny:
			return 2
		case Allow:
			return 0
		default:
			return 1
		}
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
