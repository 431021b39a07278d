package policy

import (
	"slices"
	"strings"
	"testing"
)

// What is denied, or guarded, inside of a folder is so for whoever changes the folder.
//
// proves PER-1
func TestEvaluate_Folders(t *testing.T) {
	t.Parallel()
	deny := func(pattern string) Rule { return Rule{PermissionEdit, pattern, Deny} }
	allow := func(pattern string) Rule { return Rule{PermissionEdit, pattern, Allow} }
	ask := func(pattern string) Rule { return Rule{PermissionEdit, pattern, Ask} }
	for name, c := range map[string]struct {
		folder string
		names  string // apart by blanks
		partly bool
		rules  []Rule
		want   Action
		says   string
	}{
		"nothing in it":                 {folder: "build", want: Allow},
		"files in it":                   {folder: "build", names: "a b/c", want: Allow},
		"what is denied in it":          {folder: "migrations", names: "1.sql", rules: []Rule{deny("migrations/*")}, want: Deny, says: "migrations/1.sql"},
		"what is denied may come":       {folder: "migrations", rules: []Rule{deny("migrations/*")}, want: Deny, says: "migrations"},
		"deeper":                        {folder: "db", names: "a", rules: []Rule{deny("db/migrations/*")}, want: Deny, says: "db"},
		"by any pattern":                {folder: "db", names: "a b/1.sql", rules: []Rule{deny("*.sql")}, want: Deny, says: "db/b/1.sql"},
		"by a pattern that doesn't fit": {folder: "db", names: "a", rules: []Rule{deny("*.sql")}, want: Allow},
		"by one that may fit":           {folder: "db", names: "a", partly: true, rules: []Rule{allow("*"), deny("*.sql")}, want: Deny, says: "db"},
		"beside it":                     {folder: "db", names: "a", rules: []Rule{deny("db2/*"), deny("other/db/*")}, want: Allow},
		"a later rule of all":           {folder: "db", names: "a", partly: true, rules: []Rule{deny("db/x/*"), ask("*.sql"), allow("db/*"), allow("db")}, want: Allow},
		"a later rule of a part":        {folder: "db", names: "x/1", rules: []Rule{deny("db/x/*"), allow("db/y/*")}, want: Deny},
		"the strictest":                 {folder: "db", rules: []Rule{deny("db/x/*"), ask("db/y/*")}, want: Deny},
		"what is asked":                 {folder: "db", rules: []Rule{ask("db/y/*")}, want: Ask, says: "db"},
		"a guarded file":                {folder: "conf", names: "a deep/.env", want: Ask, says: "conf conf/deep/.env"},
		"hooks":                         {folder: "sub", names: ".git", want: Ask, says: "sub sub/.git"},
		"in another case":               {folder: "conf", names: ".ENV", want: Ask, says: "conf conf/.ENV"},
		"that a rule allows":            {folder: "conf", names: ".env", rules: []Rule{allow("conf/*")}, want: Allow},
		"more than was looked at":       {folder: "big", names: "a", partly: true, want: Ask, says: "big"},
		"that a rule allows too":        {folder: "big", names: "a", partly: true, rules: []Rule{allow("big*")}, want: Allow},
		"the workspace":                 {folder: ".", names: "a migrations/1.sql", rules: []Rule{deny("migrations/*")}, want: Deny, says: "migrations/1.sql"},
		"the workspace's own":           {folder: ".", rules: []Rule{deny("migrations/*")}, want: Deny, says: "."},
		"many that are guarded":         {folder: "conf", names: strings.Repeat("a.env ", 100), want: Ask, says: strings.TrimSpace("conf " + strings.Repeat("conf/a.env ", mostBelow))},
	} {
		r := Resource{Permission: PermissionEdit, Value: c.folder, Folder: true, Names: strings.ReplaceAll(strings.TrimSpace(c.names)+" ", " ", "\x00"), Partly: c.partly}
		v := Evaluate(Workspace, c.rules, []Resource{r})
		var says []string
		for _, d := range v.Denied {
			says = append(says, d.Resource.Value)
		}
		for _, g := range v.Asks {
			says = append(says, g.Resources...)
		}
		if v.Action != c.want || c.says != "" && !slices.Equal(says, strings.Fields(c.says)) {
			t.Errorf("%s: %s %q, want %s %q", name, v.Action, says, c.want, c.says)
		}
	}
}

// Where everything is asked, a folder is asked once.
func TestEvaluate_AFolderIsAskedOnce(t *testing.T) {
	t.Parallel()
	v := Evaluate(AskWrites, nil, []Resource{{Permission: PermissionEdit, Value: "conf", Folder: true, Names: "a\x00.env\x00"}})
	if v.Action != Ask || len(v.Asks) != 1 || !slices.Equal(v.Asks[0].Resources, []string{"conf"}) {
		t.Errorf("%+v", v)
	}
}
