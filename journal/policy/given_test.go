package policy_test

import (
	"testing"

	"holdfast/journal/policy"
)

// A list of words is the command that a shell would run just so.
//
// proves PER-1
func TestCommandOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given any
		want  string
	}{
		{"ls -la; rm x", "ls -la; rm x"},
		{[]any{"ls", "-la; rm x"}, "ls '-la; rm x'"},
		{[]any{"bash", "-lc", "rm -rf x"}, "bash -lc 'rm -rf x'"},
		{[]any{"rm -rf x"}, "rm -rf x"},
		{[]string{"echo", "it's", "{a,b}", "", "~x", "a=b"}, `echo 'it'\''s' '{a,b}' '' '~x' a=b`},
		{[]any{"if", "x"}, "'if' x"},
		{[]any{"A=b", "x"}, "'A=b' x"},
		{[]any{"rm", 1.0}, ""},
		{[]any{}, ""},
		{map[string]any{"a": "b"}, ""},
		{nil, ""},
	} {
		if got := policy.CommandOf(c.given); got != c.want {
			t.Errorf("%v: %q, want %q", c.given, got, c.want)
		}
	}
	for _, given := range []any{[]any{"bash", "-lc", "cd / && rm -rf x"}, []any{"rm", "-rf", "x"}, []any{"sh", "-c", "true; rm -rf x"}} {
		v := policy.Evaluate(policy.Workspace, []policy.Rule{{Permission: "shell", Pattern: "*", Action: policy.Allow}, {Permission: "shell", Pattern: "rm *", Action: policy.Deny}}, policy.ShellResources(policy.CommandOf(given), "/w", "/h"))
		if v.Action != policy.Deny {
			t.Errorf("%v: %+v", given, v)
		}
	}
}
