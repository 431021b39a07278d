package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/runner"
)

// What an agent asks for has room in the event of a request, and what has none is asked
// for all the same, always.
//
// proves JRN-6 PER-1
func TestBounded(t *testing.T) {
	t.Parallel()
	var many []policy.Resource
	for i := range 20_000 {
		many = append(many, policy.Resource{Permission: []string{policy.PermissionRead, policy.PermissionEdit}[i%2], Value: fmt.Sprintf("\x01file %d", i)})
	}
	if few := runner.Bounded(many[:20]); len(few) != 20 || few[19] != many[19] {
		t.Errorf("of few there are %d", len(few))
	}
	got := runner.Bounded(many)
	size := 0
	for _, r := range got {
		b, err := journal.Encode(r.Value)
		if size += len(b); err != nil {
			t.Fatal(err)
		}
	}
	last := got[len(got)-2:]
	if size > journal.MaxEventBody/2 || !last[0].AlwaysAsk || !last[1].AlwaysAsk || last[0].Permission != policy.PermissionEdit || last[1].Permission != policy.PermissionRead {
		t.Errorf("%d resources of %d bytes, the last %+v", len(got), size, last)
	}
	v := policy.Evaluate(policy.Workspace, []policy.Rule{{Permission: policy.PermissionRead, Pattern: "*", Action: policy.Allow}, {Permission: policy.PermissionEdit, Pattern: "*", Action: policy.Allow}}, got)
	if v.Action != policy.Ask || len(v.Asks) != 2 {
		t.Errorf("it is %s, and %d groups are asked", v.Action, len(v.Asks))
	}
	if r := runner.FileResource(policy.PermissionEdit, strings.Repeat("a/", 1<<22), t.TempDir()); !r.AlwaysAsk || len(r.Value) > 2000 {
		t.Errorf("a path that is too long is %d bytes of %s, always asked: %v", len(r.Value), r.Permission, r.AlwaysAsk)
	}
}

// What names nothing that rules could judge is asked as what it is, for a reason that is
// true, and denied where a rule does.
//
// proves PER-2 CAL-3
func TestWish_NamesNothing(t *testing.T) {
	t.Parallel()
	w := runner.Wish{Permission: policy.PermissionShell, Shown: "# nothing"}
	v := policy.Evaluate(policy.Workspace, []policy.Rule{{Permission: "shell", Pattern: "*", Action: policy.Allow}}, runner.Judged(w))
	if len(v.Asks) != 1 || !slices.Equal(v.Asks[0].Resources, []string{"# nothing"}) || !slices.Equal(v.Asks[0].Why, []string{"nobody can tell what it would do"}) {
		t.Errorf("%+v", v)
	}
	if v := policy.Evaluate(policy.Workspace, []policy.Rule{{Permission: "shell", Pattern: "*", Action: policy.Deny}}, runner.Judged(w)); v.Action != policy.Deny {
		t.Errorf("denied: %+v", v)
	}
}
