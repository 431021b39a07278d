package acp

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/journal/policy"
)

// besides is a call that shows a harmless change, and gives its tool a patch.
func besides(t *testing.T, patch string) string {
	t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return `"kind":"edit","diffs":[{"path":"WS/a.txt","old":"x\n","new":"y\n"}],"input":{"patch":` + string(text) + `}`
}

// However a patch spells the files that it changes, in whatever dialect, they are judged: no
// preset lets one go beside a harmless change, and a rule that denies them holds.
//
// proves PER-1
func TestPatch_JudgesFilesOfEveryDialect(t *testing.T) {
	t.Parallel()
	ws := placed(t, "a.txt", "docs/")
	deny := []policy.Rule{{Permission: "edit", Pattern: "*", Action: policy.Allow}, {Permission: "edit", Pattern: ".github/*", Action: policy.Deny}}
	const f = ".github/w.yml"
	for _, patch := range []string{
		"*** Begin Patch\n *** Add File: " + f + "\n+on: push\n*** End Patch",
		"*** Begin Patch\n\t*** Add File: " + f + "  \n+on: push\n*** End Patch",
		"*** Begin Patch\n***Add File: " + f + "\n+on: push\n", "*** add file:" + f + "\n+x", "****  Delete   File :" + f, "\ufeff*** Begin Patch\n\u00a0*** Update File: " + f,
		"*** Begin Patch\n*** Update File: a.txt\n@@\n x\n *** Delete File: " + f + "\n", "*** Begin Patch\n*** Create File: " + f + "\n+x\n", "*** Begin Patch\n*** Update File: a.txt\n*** Rename to: " + f + "\n",
		"*** Begin Patch\n*** Add File: ./docs/../" + f + "\n+x", "*** Begin Patch\n*** Update File: \"" + f + "\"\n+x",
		`--- a/a.txt` + "\n" + `+++ "b/\056github/w.yml"` + "\n@@ -1 +1 @@\n-x\n+y\n", `diff --git "a/\056github/w.yml" "b/\056github/w.yml"` + "\nnew file mode 100644\n", `diff --git a/a.txt b/a.txt` + "\n" + `rename to "\056github/w.yml"` + "\n",
		"*** " + f + "\t2020-01-01\n--- " + f + "\t2020-01-01\n***************\n*** 1 ****\n! x\n--- 1 ----\n! y\n",
		"  --- " + f + "\n  +++ " + f + "\n  @@ -1 +1 @@\n  -x\n  +y\n", "  +++ " + f + "\n", "- --- " + f + "\n@@ -1 +1 @@\n-x\n+y\n", "---\t" + f + "\n+++\t" + f + "\n",
		"--- a/a.txt\r+++ b/" + f + "\r@@ -1 +1 @@\r-x\r+y\r", "-x\r--- " + f + "\r@@ -1 +1 @@\r-x\r+y\r", "-x\u2028--- " + f + "\u2028@@ -1 +1 @@\u2028-x\u2028+y", "-x\f--- " + f + "\f@@ -1 +1 @@\f-x\f+y",
		"--- " + f + "\n@@ -1 +1 @@\n-x\n+y\n", "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-x\n+y\n--- " + f + "\n noise\n@@ -0,0 +1 @@\n+y\n", "--- a.txt\n+++ a.txt\n-x\n+y\n--- " + f + "\n noise\n@@ -0,0 +1 @@\n+y\n",
		"--- a.txt\n+++ a.txt\n@@ -1,5 +1,5 @@\n-x\n--- " + f + "\n+++ " + f + "\n@@ -1 +1 @@\n", "--- a.txt\n+++ a.txt\n@@ -1,9 +1,9 @@\n-x\n--- " + f + "\n@@ -1 +1 @@\n-x\n+y\n", "*** Begin Patch\n*** Update File: a.txt\n@@ -1,99 +1,99 @@\n-x\n *** Delete File: " + f + "\n",
		"*** Begin Patch\n*** Update File: a.txt\n--- " + f + "\n x\n@@ -0,0 +1 @@\n+y\n", "--- a.txt\n+++ a.txt\n@@ -1,9 +1,9 @@\n-x\ndiff --git a/" + f + " b/" + f + "\ndeleted file mode 100644\n",
		"+++ " + f + " 2020-01-01 00:00:00\n", "Index:" + f + "\n", "rename old " + f + "\nrename new x\n", "diff --cc " + f + "\n", "--- x/" + f + "\n+++ x/" + f + "\n@@ -1 +1 @@\n", "--- x/y/" + f + "\n+++ x/y/" + f + "\n@@ -1 +1 @@\n",
		"diff -ru old/a " + f + "\n", "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-x\n+y\nProperty changes on: " + f + "\n",
	} {
		if v := judge(t, ws, policy.Workspace, nil, besides(t, patch)); v.Action != policy.Ask {
			t.Errorf("%q: %s by %+v", patch, v.Action, v.AllowedBy)
		}
		if v := judge(t, ws, policy.Workspace, deny, besides(t, patch)); v.Action != policy.Deny {
			t.Errorf("%q, denied: %s, asked %+v", patch, v.Action, v.Asks)
		}
	}
	for _, list := range []string{`["--- .github/w.yml","@@ -1 +1 @@","-x"]`, `{"x":"--- .github/w.yml","y":"@@ -1 +1 @@"}`} {
		call := strings.Replace(besides(t, "P"), `"P"`, list, 1)
		if v := judge(t, ws, policy.Workspace, deny, call); v.Action != policy.Deny && !strings.HasPrefix(list, "{") || v.Action == policy.Allow {
			t.Errorf("%s: %s", list, v.Action)
		}
	}
}

// A patch of which not all files can be told is asked, whatever rules allow, and it is said
// why.
//
// proves PER-1 PER-2
func TestPatch_AsksWhatCantBeTold(t *testing.T) {
	t.Parallel()
	ws := placed(t, "a.txt", "docs/")
	freely := []policy.Rule{{Permission: "edit", Pattern: "*", Action: policy.Allow}}
	const head, honest = "*** Begin Patch\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n"
	for _, patch := range []string{
		head + "*** Frob File: x\n+y\n", head + "*** x\n+y\n", head + "** Add File: x\n+y", head + "Add File: x\n+y", head + "＊＊＊ Add File: x\n", head + "*** Move File: a.txt -> x\n", head + "*** Add File:\n+x", head + "*** Add File: 'x'\n+y",
		honest + "=== modified file 'x'\n", honest + "==== //depot/x#1 - x ====\n", honest + "hunk ./x 1\n", honest + "RCS file: x\n", honest + "GIT binary patch\n", honest + "new file mode 120000\n", honest + "X--- x\n", honest + "> --- x\n", honest + "!x\n", honest + "Binary files x and y differ\n",
		"diff --git a b c d\n", "diff --git \"a/x\n", "--- 'x'\n+++ 'y'\n", "+++ \"b/x\\q\"\n", "+++ x\ty.txt\n", "+++ a.txt\t../x\n", strings.Repeat("--- x\n y\n", 30) + "@@ -1 +1 @@\n",
		"<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n", `{"path":"x"}`, "<file>x</file>", "1c1\n< x\n---\n> y\n", "s/x/y/", honest + ".github/w.yml\n",
	} {
		v := judge(t, ws, policy.Workspace, freely, besides(t, patch))
		why := ""
		for _, g := range v.Asks {
			if g.AlwaysAsk {
				why += strings.Join(g.Why, ",")
			}
		}
		if v.Action != policy.Ask || !strings.Contains(why, "patch") {
			t.Errorf("%q: %s, since %q", patch, v.Action, why)
		}
	}
}

// An honest patch is judged by its files, whatever stands in them.
//
// proves PER-1
func TestPatch_HonestOnesNameTheirFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ patch, files string }{
		{"diff --git a/a.txt b/a.txt\nindex 0a1..0b2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@ func x\n a\n--- drop x\n+-- keep x\n *** note ***\n@@ -9,3 +9,2 @@\n b\n--- drop y\n \n\\ No newline at end of file\n", "a/a.txt b/a.txt"},
		{"--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n *** Important: x\n --- a/q\n +++ b/q\n-i\n+i\n", "a/a.txt b/a.txt"},
		{"diff --git a/my file b/my file\n--- a/my file\t\n+++ b/my file\t\n@@ -1 +1 @@\n-x\n+y\n", "a/my file b/my file"},
		{"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nsimilarity index 90%\nrename from \"\\303\\244\"\nrename to c\n", "a/ä b/ä c ä"},
		{"diff --git a/x b/y\nold mode 100644\nnew mode 100755\nrename from x\nrename to y\n", "a/x b/y x y"},
		{"--- a.txt\tCurrent\n+++ a.txt\tProposed\n@@ -1 +1 @@\n-x\n+y\n", "a.txt"},
		{"Index: /w/a.txt\n===================================================================\n--- /w/a.txt\t(revision 1)\n+++ /w/a.txt\t2020-01-01 10:00:00.5 +0100\n@@ -0,0 +1 @@\n+++i;\n", "/w/a.txt"},
		{"--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+*** Add File: q\n+Index: q\n", "b/n"},
		{"*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@ func x\n a\n--- drop x\n+-- keep\n *** note\n\n+*** Add File: q\n@@\n-b\n*** End of File\n*** Add File: c d.txt\n+x\n*** Delete File: e\n*** End Patch", "a.txt b.txt c d.txt e"},
		{"```diff\n--- a/a.txt\r\n+++ b/a.txt\r\n@@ -1 +1 @@\r\n-x\r\n+y\r\n```", "a/a.txt b/a.txt"},
		{"*** x/a.txt\tMon Jan  1 10:00:00 2020\n--- y/a.txt\t2020-01-01\n***************\n*** 1,2 ****\n  q\n! x\n--- 1,2 ----\n  q\n! y\n+ z\n", "x/a.txt y/a.txt"},
		{"-tge\n+the", ""},
	} {
		var files []string
		untold := readPatch(c.patch, true, func(name string) bool {
			files = append(files, name)
			return false
		})
		slices.Sort(files)
		if got := strings.Join(slices.Compact(files), " "); got != c.files || untold != "" {
			t.Errorf("%q names %q, want %q; untold %q", c.patch, got, c.files, untold)
		}
	}
}
