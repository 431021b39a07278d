package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files that a pattern may mean are those that a shell would find, and where there is
// too much to look at, that is said.
//
// proves PER-1
func TestLinks_Matching(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b/c", "a/bb/c", "ab/b/d", ".h/b/c", "a/b/[x]", "z"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"l": "a", "gone": "nowhere/x", "a/round": "../a"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	for _, pattern := range []string{"*", "a*/b/c", "*/b*/?", "l/*", "*/*/[cd]", "a/b/\\[x]", "[", "a/[", "gone*", "z/*", "*/", "**/c", "nope/*", "*/nope"} {
		l := links{room: maxLooked}
		got, all := l.matching(dir, pattern)
		want, _ := filepath.Glob(filepath.Join(dir, pattern))
		want = append(want, filepath.Join(dir, pattern))
		slices.Sort(got)
		slices.Sort(want)
		if !all || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %q; want %q", pattern, all, got, want)
		}
	}
	l := links{room: 20}
	if _, all := l.matching(dir, "*/*/*"); all {
		t.Error("more was looked at than there is room for")
	}
}

// Where a path really lies, if it is there in part, as a link, or not at all.
func TestRealPath(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"l": "a", "gone": "nowhere/x", "far": "/nowhere-at-all/y", "round": "round", "chain": "gone"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	deep := strings.Repeat("x/", 1500) + "x"
	for path, want := range map[string]string{
		"a/b": dir + "/a/b", "l/b": dir + "/a/b", "l/b/new/er": dir + "/a/b/new/er", "new": dir + "/new", "gone": dir + "/nowhere/x", "gone/z": dir + "/nowhere/x/z",
		"far/z": "/nowhere-at-all/y/z", "chain/q/r": dir + "/nowhere/x/q/r", "round": "/", "l/" + deep: dir + "/a/" + deep,
	} {
		if got := realPath(filepath.Join(dir, path), 0); got != want {
			t.Errorf("%s lies at %s, want %s", path, got, want)
		}
	}
}
