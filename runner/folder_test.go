package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/journal/policy"
)

// What lies in a folder is looked at as far as there is room, and no link is followed.
//
// proves PER-1
func TestFolders(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/b", "many", "empty"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxNames {
		if err := os.WriteFile(filepath.Join(ws, "many", strings.Repeat("x", 1+i%200)+string(rune('0'+i/200))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"a/up", "a/b/loop"} {
		if err := os.Symlink(ws, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"b", "b/loop", "up"}
	if os.WriteFile(filepath.Join(ws, "a", "b", "\xff.env"), nil, 0o600) == nil { // some systems take no such names
		want = slices.Insert(want, 2, "b/\uFFFD.env")
	}
	look := func(permission string, names ...string) []policy.Resource {
		var in []policy.Resource
		for _, name := range names {
			in = append(in, policy.Resource{Permission: permission, Value: name})
		}
		return Folders(in, ws, false)
	}
	got := look(policy.PermissionEdit, "a", "nowhere", "empty", "a/up")
	names := strings.Split(strings.TrimSuffix(got[0].Names, "\x00"), "\x00")
	slices.Sort(names)
	if !got[0].Folder || got[0].Partly || !slices.Equal(names, want) {
		t.Errorf("a has %q, want %q", names, want)
	}
	if got[1].Folder || !got[2].Folder || got[2].Names != "" || got[2].Partly || got[3].Folder {
		t.Errorf("%+v", got)
	}
	if r := look(policy.PermissionRead, "a")[0]; r.Folder {
		t.Errorf("what is read isn't changed: %+v", r)
	}
	if both := look(policy.PermissionEdit, "a", "many"); both[0].Partly || !both[1].Folder || !both[1].Partly || both[1].Why == "" {
		t.Errorf("more than there is room for: %v %v %q", both[0].Partly, both[1].Partly, both[1].Why)
	}
}

// A path that goes up again from a link leads where the link's folder lies, for whoever
// opens it: it isn't the file that it reads like.
//
// proves PER-1
func TestFileResource_UpFromALink(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(ws, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": t.TempDir(), "in": "a/b", "self": "."} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"out/../x": policy.PermissionExternal, ws + "/out/../x": policy.PermissionExternal, "in/../x": policy.PermissionExternal, "self/../x": policy.PermissionExternal, strings.Repeat("a/../", 100) + "x": policy.PermissionExternal,
		"a/../x": policy.PermissionRead, "a/b/../../x": policy.PermissionRead, "nowhere/../x": policy.PermissionRead, "./a/b/../x": policy.PermissionRead, "in/x": policy.PermissionRead, "a/in/../x": policy.PermissionRead,
	} {
		if r := FileResource(policy.PermissionRead, path, ws); r.Permission != want || want == policy.PermissionExternal && !r.AlwaysAsk {
			t.Errorf("%s: %+v, want %s", path, r, want)
		}
	}
}

// A command that names a file, or goes to a folder, by way of a link and up again reaches
// what lies where the link leads.
//
// proves PER-1
func TestCommandResources_UpFromALink(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(ws, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": t.TempDir(), "a/in": "b"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]policy.Action{
		"cat out/../x": policy.Ask, "cat " + ws + "/out/../x": policy.Ask, "ls out/..": policy.Ask, "cat o*/../x": policy.Ask, "grep -r --file=out/../x y": policy.Ask, "cd a && cat ../out/../x": policy.Ask,
		"cd out/.. && make test": policy.Ask, "cat out/../*": policy.Ask,
		"cat a/../x": policy.Allow, "cd a/b && cat ../../x": policy.Allow, "cat a/*/../x": policy.Allow, "ls nowhere/..": policy.Allow,
	} {
		all := []policy.Rule{{Permission: policy.PermissionShell, Pattern: "*", Action: policy.Allow}} // a preset's own allow asks more
		if v := policy.Evaluate(policy.Workspace, all, CommandResources(command, ws)); v.Action != want {
			t.Errorf("%s: %+v", command, v)
		}
	}
}
