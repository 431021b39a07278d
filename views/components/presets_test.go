package components_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/journal/policy"
	"holdfast/views/components"
)

// The table says of each preset what its rules do.
func TestPresetTable(t *testing.T) {
	t.Parallel()
	want := map[string][3]string{
		"Read a file in the workspace":            {"Asked", "Allowed, but for some", "Allowed, but for some"},
		"Write a file in the workspace":           {"Asked", "Asked", "Allowed, but for some"},
		"Run a command":                           {"Asked", "Asked", "Some are allowed, the others asked"},
		"Reach the web":                           {"Asked", "Asked", "Asked"},
		"Use a tool of another server":            {"Asked", "Asked", "Asked"},
		"Reach outside the workspace":             {"Asked", "Asked", "Asked"},
		"Do the same for the third time in a row": {"Asked", "Asked", "Asked"},
	}
	rows := components.PresetTable()
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
	for _, row := range rows {
		for i, cell := range row.Cells {
			if cell.Words != want[row.What][i] {
				t.Errorf("%s, %s: %q, want %q", row.What, components.Presets()[i], cell.Words, want[row.What][i])
			}
		}
	}
	shell := rows[2].Cells[2]
	for _, command := range []string{"go test", "ls", "make check"} {
		if !slices.Contains(shell.Allow, command) {
			t.Errorf("%s isn't said to be allowed: %v", command, shell.Allow)
		}
	}
	if !slices.Contains(rows[0].Cells[1].Except, "*.pem") || slices.Contains(rows[0].Cells[1].Except, ".env.example") {
		t.Errorf("secrets are asked by %v", rows[0].Cells[1].Except)
	}
	// What is said to be allowed is what the rules allow, each rule told once.
	for i, p := range components.Presets() {
		allows, asks := 0, 0
		for _, r := range p.Rules() {
			if r.Action == policy.Allow && r.Pattern != "*" && r.Permission == policy.PermissionShell {
				allows++
			}
			if r.Action == policy.Ask && r.Permission == policy.PermissionEdit && r.Pattern != "*" {
				asks++
			}
		}
		if got := len(rows[2].Cells[i].Allow); got != allows {
			t.Errorf("%s: %d commands are listed, the rules have %d", p, got, allows)
		}
		if got := len(rows[1].Cells[i].Except); got != asks {
			t.Errorf("%s: %d kinds of files are listed, the rules have %d", p, got, asks)
		}
	}
	for _, cell := range rows[2].Cells {
		if slices.ContainsFunc(cell.Allow, func(s string) bool { return strings.HasSuffix(s, " *") }) {
			t.Error("a command is listed with its pattern")
		}
	}
}
