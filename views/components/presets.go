package components

import (
	"slices"
	"strings"

	"holdfast/journal/policy"
)

// PresetRow is what each preset does with one kind of thing.
type PresetRow struct {
	What  string
	Cells []PresetCell
}

// PresetCell is a short word, with the patterns that it has exceptions for.
type PresetCell struct {
	Words  string
	Allow  []string // what runs without asking, if not all of it does
	Except []string // what is asked nevertheless
}

// Presets are all of them, from the strictest.
func Presets() []policy.Preset {
	return []policy.Preset{policy.AskAll, policy.AskWrites, policy.Workspace}
}

// PresetTable is read from the presets' own rules, so that it can't say anything else.
func PresetTable() []PresetRow {
	kinds := []struct{ permission, what string }{
		{policy.PermissionRead, "Read a file in the workspace"},
		{policy.PermissionEdit, "Write a file in the workspace"},
		{policy.PermissionShell, "Run a command"},
		{policy.PermissionWeb, "Reach the web"},
		{policy.PermissionMCP, "Use a tool of another server"},
		{policy.PermissionExternal, "Reach outside the workspace"},
		{policy.PermissionLoop, "Do the same for the third time in a row"},
	}
	rows := make([]PresetRow, len(kinds))
	for i, kind := range kinds {
		rows[i].What = kind.what
		for _, p := range Presets() {
			rows[i].Cells = append(rows[i].Cells, presetCell(p.Rules(), kind.permission))
		}
	}
	return rows
}

// presetCell sums up the rules about one permission. The last that matches wins,
// and where none does it is asked.
func presetCell(rules []policy.Rule, permission string) PresetCell {
	var c PresetCell
	all := false
	for _, r := range rules {
		switch {
		case r.Permission != permission:
		case r.Pattern == "*":
			all, c.Allow, c.Except = r.Action == policy.Allow, nil, nil
		case r.Action == policy.Allow:
			if c.Except = slices.DeleteFunc(c.Except, func(s string) bool { return s == r.Pattern }); !all {
				c.Allow = append(c.Allow, strings.TrimSuffix(r.Pattern, " *"))
			}
		default:
			c.Except = append(c.Except, r.Pattern)
		}
	}
	switch {
	case all && len(c.Except) > 0:
		c.Words = "Allowed, but for some"
	case all:
		c.Words = "Allowed"
	case len(c.Allow) > 0:
		c.Words = "Some are allowed, the others asked"
	default:
		c.Words, c.Except = "Asked", nil
	}
	return c
}
