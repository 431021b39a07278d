package main_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/requirements.md maps each rule to the tests that prove it. This file
// keeps the map true: a rule that is built has a test, a test that names a rule
// stands in the map, and what the map names exists. A test names a rule by its
// id in its own name or a subtest's (TestStore_ADM3, t.Run("ADM-3 …")), or by a
// comment in it or above it: the word proves, then ids with commas or "and".
//
//	go test -run TestRequirementsMap -update .
//
// writes the column of tests anew from the sources; texts are written by hand.

var update = flag.Bool("update", false, "write docs/requirements.md anew from the tests")

const requirementsFile = "docs/requirements.md"

// built lists the rules that this version is to keep, in the map's order.
var built = ids(
	"JRN 1-8", "ADM 1-10", "PRO 1-6", "LEA 1-12", "COO 1-10", "ATT 1", "ATT 3-4", "ATT 6", "CAL 1-9",
	"REC 1-12", "PER 1-7", "RDR 1-7", "OWN 1-3", "WSP 1", "STO 1",
)

// notBuilt holds the rules that have no test yet, with the reason. It can only
// shrink: a rule in it that has a test fails.
var notBuilt = map[string]string{}

// ids spells out ranges such as "JRN 1-8".
func ids(ranges ...string) []string {
	var all []string
	for _, r := range ranges {
		area, numbers, _ := strings.Cut(r, " ")
		first, last, isRange := strings.Cut(numbers, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil {
			panic("requirements_test.go: not a range: " + r)
		}
		for n := from; n <= to; n++ {
			all = append(all, fmt.Sprintf("%s-%d", area, n))
		}
	}
	return all
}

// reasons gives each id of the ranges the same reason.
func reasons(why string, ranges ...string) map[string]string {
	m := map[string]string{}
	for _, id := range ids(ranges...) {
		m[id] = why
	}
	return m
}

func TestRequirementsMap(t *testing.T) {
	t.Parallel()
	proofs, bad := findProofs(sources(t, ".go"))
	for _, s := range bad {
		t.Error(s)
	}
	text, err := os.ReadFile(requirementsFile)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		text = rewriteMap(text, built, notBuilt, proofs)
		if err := os.WriteFile(requirementsFile, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range checkMap(text, built, notBuilt, proofs) {
		t.Error(s)
	}
}

// proofs are the names of the tests that name a rule, by its id, sorted.
type proofs map[string][]string

func (p proofs) add(id, test string) {
	if !slices.Contains(p[id], test) {
		p[id] = append(p[id], test)
		slices.Sort(p[id])
	}
}

const areas = `ADM|ATT|CAL|COO|JRN|LEA|OWN|PER|PRO|RDR|REC|SHR|STO|WSP`

var (
	idPattern = regexp.MustCompile(`\b(` + areas + `)-([1-9][0-9]*)\b`)
	// A function's name can't hold a hyphen: ADM3 or ADM_3 stands for it there.
	idInFunc = regexp.MustCompile(`(` + areas + `)_?([1-9][0-9]*)`)
	// proving finds the ids after the word; between them stand commas or "and".
	proving  = regexp.MustCompile(`(?i)\bproves:?\s+((?:(?:,|and|\s)*\b(?-i:` + areas + `)-[1-9][0-9]*\b)+)`)
	testFunc = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([^a-z]|$)`)
)

// findProofs reads the tests among the sources. What looks like a proof but
// stands in no test is returned as bad.
func findProofs(files map[string][]byte) (found proofs, bad []string) {
	found = proofs{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, files[file], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		var tests []span
		if strings.HasSuffix(file, "_test.go") {
			tests = testsIn(f, path.Dir(file))
		}
		for _, s := range tests {
			for _, id := range s.ids {
				found.add(id, s.name)
			}
		}
		for _, group := range f.Comments {
			proven := proving.FindAllString(group.Text(), -1)
			if len(proven) == 0 {
				continue
			}
			name := enclosing(tests, group.Pos())
			if name == "" {
				bad = append(bad, fmt.Sprintf("%s: %q stands in no test: move it into the one that does", fset.Position(group.Pos()), proven[0]))
				continue
			}
			for _, id := range idPattern.FindAllString(strings.Join(proven, " "), -1) {
				found.add(id, name)
			}
		}
	}
	return found, bad
}

// span is the part of a file that belongs to a test or subtest.
type span struct {
	name     string
	from, to token.Pos
	ids      []string // that the name holds
}

// testsIn returns a file's tests, and their subtests whose names are literals,
// each outer one before the inner.
func testsIn(f *ast.File, pkg string) []span {
	if pkg == "." {
		pkg = module
	}
	var spans []span
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Body == nil || !testFunc.MatchString(fn.Name.Name) {
			continue
		}
		test := span{name: pkg + "." + fn.Name.Name, from: fn.Pos(), to: fn.End()}
		if fn.Doc != nil {
			test.from = fn.Doc.Pos()
		}
		for _, m := range idInFunc.FindAllStringSubmatch(fn.Name.Name, -1) {
			test.ids = append(test.ids, m[1]+"-"+m[2])
		}
		spans = append(spans, test)
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if title, ok := subtest(call); ok {
					name := test.name + "/" + strings.ReplaceAll(title, "`", "'")
					spans = append(spans, span{name, call.Pos(), call.End(), idPattern.FindAllString(title, -1)})
				}
			}
			return true
		})
	}
	return spans
}

// subtest returns the name of a call like t.Run("name", …).
func subtest(call *ast.CallExpr) (name string, ok bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Run" || len(call.Args) != 2 {
		return "", false
	}
	lit, ok := call.Args[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	name, err := strconv.Unquote(lit.Value)
	return name, err == nil
}

// enclosing returns the innermost test at a position, or "".
func enclosing(tests []span, pos token.Pos) string {
	name := ""
	for _, s := range tests { // inner ones come later
		if s.from <= pos && pos < s.to {
			name = s.name
		}
	}
	return name
}

// row is a line of the map's table.
type row struct{ id, text, tests string }

var rowPattern = regexp.MustCompile(`(?m)^\| *(` + idPattern.String() + `) *\|((?:[^|\n\\]|\\.)*)\|((?:[^|\n\\]|\\.)*)\|$`)

func rows(text []byte) []row {
	var all []row
	for _, m := range rowPattern.FindAllSubmatch(text, -1) {
		all = append(all, row{string(m[1]), strings.TrimSpace(string(m[4])), strings.TrimSpace(string(m[5]))})
	}
	return all
}

// testsColumn is what the map must say in a rule's last column.
func testsColumn(id string, notBuilt map[string]string, found proofs) string {
	if len(found[id]) == 0 {
		if why, ok := notBuilt[id]; ok {
			return "not yet: " + why
		}
		return "none"
	}
	var names []string
	for _, name := range found[id] {
		names = append(names, "`"+strings.ReplaceAll(name, "|", `\|`)+"`")
	}
	return strings.Join(names, ", ")
}

// rewriteMap returns the map with its last column anew. A rule that is missing
// gets a row without text at the end, for a person to place and fill.
func rewriteMap(text []byte, built []string, notBuilt map[string]string, found proofs) []byte {
	var have []string
	text = rowPattern.ReplaceAllFunc(text, func(line []byte) []byte {
		r := rows(line)[0]
		have = append(have, r.id)
		return fmt.Appendf(nil, "| %s | %s | %s |", r.id, r.text, testsColumn(r.id, notBuilt, found))
	})
	text = append(bytes.TrimRight(text, "\n"), '\n')
	for _, id := range built {
		if !slices.Contains(have, id) {
			text = fmt.Appendf(text, "| %s |  | %s |\n", id, testsColumn(id, notBuilt, found))
		}
	}
	return text
}

// checkMap holds the map against the lists above and the tests in the sources.
func checkMap(text []byte, built []string, notBuilt map[string]string, found proofs) []string {
	var bad []string
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }

	for _, id := range built {
		why, waits := notBuilt[id]
		switch {
		case waits && len(found[id]) > 0:
			say("%s has a test (%s): take it off notBuilt in requirements_test.go, and run with -update", id, found[id][0])
		case waits && why == "":
			say("%s is not built, and no reason is given", id)
		case !waits && len(found[id]) == 0:
			say("%s is built, but no test names it", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(notBuilt)) {
		if !slices.Contains(built, id) {
			say("%s stands in notBuilt, but not in built", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(built, id) {
			say("%s is named by %s, but is not in built", id, found[id][0])
		}
	}

	var order []string
	for _, r := range rows(text) {
		order = append(order, r.id)
		if !slices.Contains(built, r.id) {
			say("%s stands in %s, but is not in built", r.id, requirementsFile)
			continue
		}
		if r.text == "" {
			say("%s has no text in %s", r.id, requirementsFile)
		}
		if want := testsColumn(r.id, notBuilt, found); r.tests != want {
			say("%s: %s names other tests than the sources; run with -update\n  map:     %s\n  sources: %s", r.id, requirementsFile, r.tests, want)
		}
	}
	if !slices.Equal(order, built) {
		say("%s must have one row for each rule, in this order:\n  want %s\n  has  %s", requirementsFile, built, order)
	}
	return bad
}

// The map's guard must be able to fail, in each way for which it is there.
func TestRequirementsMap_CanFail(t *testing.T) {
	t.Parallel()
	const good = "# Map\n\n| id | rule | tests |\n| --- | --- | --- |\n" +
		"| AAA-0 | no rule's id | x |\n" +
		"| ADM-1 | accepted \\| once | `store.TestOnce` |\n| ADM-2 | keys | not yet: later |\n"
	two, later := ids("ADM 1-2"), reasons("later", "ADM 2")
	once := proofs{"ADM-1": {"store.TestOnce"}}
	for _, tt := range []struct {
		name     string
		text     string
		built    []string
		notBuilt map[string]string
		found    proofs
		says     string
	}{
		{"all is well", good, two, later, once, ""},
		{"a built rule without a test", good, two, later, proofs{}, "ADM-1 is built, but no test names it"},
		{"a rule not built with a test", good, two, later, proofs{"ADM-1": once["ADM-1"], "ADM-2": {"store.TestKey"}}, "take it off notBuilt"},
		{"no reason", good, two, reasons("", "ADM 2"), once, "no reason is given"},
		{"a reason for an unknown rule", good, two, reasons("later", "ADM 2-3"), once, "ADM-3 stands in notBuilt"},
		{"a test that names an unknown rule", good, two, later, proofs{"ADM-1": once["ADM-1"], "ADM-99": {"x.TestY"}}, "ADM-99 is named by x.TestY"},
		{"a test that is gone", good, two, later, proofs{"ADM-1": {"store.TestOther"}}, "names other tests"},
		{"a test that is not in the map", good, two, later, proofs{"ADM-1": {"store.TestOnce", "store.TestTwice"}}, "names other tests"},
		{"a row too few", strings.Replace(good, "| ADM-2 | keys | not yet: later |\n", "", 1), two, later, once, "one row for each rule"},
		{"a row twice", good + "| ADM-2 | keys | not yet: later |\n", two, later, once, "one row for each rule"},
		{"a row too many", good + "| REC-1 | sweep | none |\n", two, later, once, "REC-1 stands in docs/requirements.md"},
		{"no text", strings.Replace(good, "keys", "", 1), two, later, once, "ADM-2 has no text"},
	} {
		wantOne(t, tt.name, checkMap([]byte(tt.text), tt.built, tt.notBuilt, tt.found), tt.says)
	}

	// The generator mends the column, keeps the texts, and is stable.
	stale := strings.Replace(good, "`store.TestOnce`", "`store.TestGone`", 1)
	stale = strings.Replace(stale, "| ADM-2 | keys | not yet: later |\n", "", 1)
	mended := rewriteMap([]byte(stale), two, later, once)
	if want := strings.Replace(good, " keys ", "  ", 1); string(mended) != want {
		t.Errorf("rewritten map:\n%s\nwant:\n%s", mended, want)
	}
	if again := rewriteMap(mended, two, later, once); !bytes.Equal(again, mended) {
		t.Errorf("rewritten twice:\n%s", again)
	}
}

func TestRequirementsMap_FindsProofs(t *testing.T) {
	t.Parallel()
	// The marker is put together here, lest this file seem to hold proofs.
	src := strings.ReplaceAll(`package store

// TestOnce is about admission.
// @ ADM-1, ADM-2
// and ADM-3.
func TestOnce(t *testing.T) {
	t.Run("JRN-1 is immutable", func(t *testing.T) {
		// @: JRN-2
	})
	t.Run(name, func(t *testing.T) {
		f() // @ JRN-3 and JRN-4
	})
}

func TestLEA4_Fence_LEA_5(t *testing.T) {}

// COO-1 is only mentioned here.
func TestNothing(t *testing.T) { t.Log("COO-2", "it @ COO-3") }
`, "@", "proves")
	found, bad := findProofs(map[string][]byte{"store/a_test.go": []byte(src)})
	if len(bad) > 0 {
		t.Errorf("bad: %q", bad)
	}
	want := proofs{
		"ADM-1": {"store.TestOnce"}, "ADM-2": {"store.TestOnce"}, "ADM-3": {"store.TestOnce"},
		"JRN-1": {"store.TestOnce/JRN-1 is immutable"}, "JRN-2": {"store.TestOnce/JRN-1 is immutable"},
		"JRN-3": {"store.TestOnce"}, "JRN-4": {"store.TestOnce"},
		"LEA-4": {"store.TestLEA4_Fence_LEA_5"}, "LEA-5": {"store.TestLEA4_Fence_LEA_5"},
	}
	if !maps.EqualFunc(found, want, slices.Equal[[]string]) {
		t.Errorf("found %v\nwant  %v", found, want)
	}

	stray := strings.ReplaceAll("package store\n\n// @ ADM-1\nfunc helper() {}\n", "@", "proves")
	_, bad = findProofs(map[string][]byte{"store/b_test.go": []byte(stray)})
	wantOne(t, stray, bad, "stands in no test")
	found, bad = findProofs(map[string][]byte{"store/a.go": []byte(src)})
	wantOne(t, "store/a.go", bad, "stands in no test")
	if len(found) > 0 {
		t.Errorf("found proofs outside of tests: %v", found)
	}
}
