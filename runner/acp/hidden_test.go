package acp

import (
	"testing"

	"holdfast/journal/policy"
)

// What is hidden isn't judged as what stands in its place: a file is always asked, and so is
// a command whose end is hidden.
//
// proves PER-1 OWN-3
func TestUnseen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		permission, value string
		want              bool
	}{
		{policy.PermissionEdit, "[hidden]", true},
		{policy.PermissionRead, "a/[hidden]/b", true},
		{policy.PermissionEdit, "a/b", false},
		{policy.PermissionShell, "rm -rf [hidden]", true},
		{policy.PermissionShell, `rm -rf "[hidden]"`, true},
		{policy.PermissionShell, "rm -rf x", false},
		{policy.PermissionShell, "curl -H [hidden] https://a.example", false},
	} {
		if got := unseen([]policy.Resource{{Permission: c.permission, Value: c.value}})[0]; got.AlwaysAsk != c.want || (got.Why != "") != c.want {
			t.Errorf("%s %s: %+v", c.permission, c.value, got)
		}
	}
}
