package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The arrows of docs/architecture.md, as tables. A package, file or import that
// a table doesn't know fails the test: whoever adds one decides here what it
// may do, and writes the reason beside it. Packages that don't exist yet may
// stand in a table.

// module is the module's path; packages below are written relative to it.
const module = "holdfast"

// arrow says what packages may import from this module. A pattern is a folder,
// or with /... the folder and all below it; the first arrow that matches counts.
type arrow struct {
	from string
	to   []string
	why  string
}

var arrows = []arrow{
	{"journal/policy/...", []string{"journal", "journal/policy/..."}, "rules are pure, and judge the journal's words"},
	{"journal", nil, "the domain is below all"},
	{"journal/...", []string{"journal"}, "the domain is below all"},
	{"migrations/...", nil, "SQL files, embedded"},
	{"static/...", nil, "assets, embedded"},
	{"store/...", []string{"journal/...", "migrations/...", "store/..."}, "the journal in SQL, below everything that uses it"},
	{"vault", []string{"journal", "store"}, "credentials, sealed, over the store that keeps them; runner and handlers meet in the store"},
	{"runner", []string{"journal/...", "store/...", "runner/...", "vault"}, "runner and handlers meet only in the journal; runner renders nothing"},
	{"runner/acp/wire", nil, "the lines of a protocol: a reader and a writer that know nothing of us"},
	{"runner/...", []string{"journal/...", "runner/..."}, "an agent or a tool hands facts to the runner, which appends them"},
	{"views/components/...", []string{"journal/...", "views/components/..."}, "pages are made of components, not the reverse"},
	{"views/...", []string{"journal/...", "static/...", "views/..."}, "a template is given what it shows, and names assets; it reaches neither database nor runner"},
	{"handlers/...", []string{"journal/...", "store/...", "views/...", "static/...", "handlers/...", "vault"}, "append to the journal; the runner will see it"},
	{".", []string{"journal/...", "store/...", "runner/...", "views/...", "handlers/...", "static/...", "migrations/...", "vault"}, "main wires all"},
	{"e2e/power", nil, "looks at processes from outside; no product code"},
	{"e2e/rig", nil, "what the tests of the binary have in common; no product code"},
	{"e2e/fakeagent", []string{"runner/acp/wire"}, "an agent for tests; of the product it has the protocol alone"},
	{"e2e/seed", []string{"journal/...", "store/...", "e2e/power"}, "fills a folder through the product's doors; no product code"},
	{"e2e/...", []string{"journal/...", "e2e/..."}, "tests the built binary from outside; no product code"},
	{"bench/...", []string{"journal/...", "store/...", "handlers/...", "migrations/...", "bench/..."}, "measures; no product code"},
	{"scripts/seed", []string{"e2e/seed"}, "the command of make seed"},
	{"scripts/...", nil, "tools of the Makefile; no product code"},
}

// reserved packages may be imported by a few of ours only.
type reserved struct {
	pkgs []string // with all below them
	by   []string // patterns as in arrow
	why  string
}

var reservations = []reserved{
	{
		[]string{"database/sql", "github.com/jmoiron/sqlx", "github.com/lib/pq", "modernc.org/sqlite", "github.com/pressly/goose/v3"},
		[]string{"store/...", "e2e/...", "bench/..."},
		"SQL lives in store; e2e and bench look at the tables from outside",
	},
	{
		[]string{"github.com/gofiber/fiber/v2", "github.com/valyala/fasthttp"},
		[]string{"handlers/...", ".", "bench/..."},
		"only handlers speak HTTP to people",
	},
	{
		[]string{"github.com/a-h/templ"},
		[]string{"views/...", "handlers/..."},
		"only views render",
	},
}

// pure packages import the standard library, but for a few, and nothing in it
// that reaches the world.
type pure struct {
	pkgs   string
	beside []string // allowed besides the standard library and the module's own
	never  []string // with all below them
}

var doesIO = []string{"database/sql", "net/http", "os", "log/slog"}

var purities = []pure{
	{"journal/policy/...", []string{"mvdan.cc/sh/v3", "golang.org/x/text", "golang.org/x/net/idna"}, doesIO},
	{"journal/...", nil, doesIO},
	{"runner/acp/wire", nil, doesIO},
}

// starters are the files in which a goroutine may be started, with the one who
// stops it and waits for it. Tests may start any.
var starters = map[string]string{
	"runner/acp/looked.go":     "runs an agent that is only looked at: Probe waits for it",
	"handlers/agent_looks.go":  "looks at agents: ended and awaited by Shutdown",
	"serve.go":                 "the web server and the graceful stop: their ends are awaited by serve, or the process ends",
	"runner/runner.go":         "drains: ended and awaited by Stop",
	"runner/turn.go":           "ends the repetition of a write when the run ends: undone when the write returns",
	"runner/tool/*.go":         "a command's pipes and its wait, joined before the call returns",
	"runner/shim/*.go":         "in a shim: its clients and its command, which end with the process; in a server: what ends a wait, undone when that returns",
	"store/store.go":           "starts the store's own goroutines: ended and awaited by Close",
	"store/writer.go":          "the writers with group commit: ended and awaited by Close",
	"store/notify.go":          "listener and notifier: ended and awaited by Close",
	"store/doctor_listen.go":   "ends a listener that waits too long: undone when the check returns",
	"handlers/stream.go":       "a stream's writer: ended by the client, the stop channel or the server's stop",
	"handlers/watch.go":        "the watch of open streams: ended by the last of them, awaited by Shutdown",
	"bench/*.go":               "callers of a measurement, joined before its table",
	"e2e/*.go":                 "callers from outside, joined by their test",
	"e2e/rig/process_linux.go": "waits for a process of a test: it ends with the process",
	"e2e/fakeagent/*.go":       "works off prompts: ended and awaited by serve, or the process ends",
	"scripts/gotest/*.go":      "reads a test run, joined before the counts",
}

// cleaner is the file that makes SafeHTML by a filter, and has the one templ.Raw.
const cleaner = "views/components/safehtml.go"

// backgrounds are the files that may begin a context of their own; main.go and
// tests may always.
var backgrounds = map[string]string{
	"runner/shim/main.go":   "the main of the process holdfast shim",
	"bench/main.go":         "the main of the measurements",
	"e2e/fakeagent/main.go": "the main of the agent for tests",
}

// pkgInfo is what `go list -json` tells of a package.
type pkgInfo struct {
	ImportPath string
	Imports    []string
	Standard   bool
	GoFiles    []string
}

// goList lists our packages and all that they depend on. Generated code and
// files for other systems or tags are imports like any other, hence env and tags.
func goList(t *testing.T, goos, tags string) []pkgInfo {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-tags="+tags,
		"-json=ImportPath,Imports,Standard,GoFiles", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var pkgs []pkgInfo
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkgInfo
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatalf("go list's answer: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}

func TestArchitecture_Imports(t *testing.T) {
	t.Parallel()
	for _, build := range []struct{ goos, tags string }{{"linux", ""}, {"linux", "crashpoints"}, {"linux", "dev"}, {"linux", "agents"}, {"darwin", ""}} {
		pkgs := goList(t, build.goos, build.tags)
		for _, s := range checkImports(pkgs) {
			t.Errorf("%s %s: %s", build.goos, build.tags, s)
		}
		// A list without the domain would find nothing wrong with anything.
		sawJournal := slices.ContainsFunc(pkgs, func(p pkgInfo) bool { return p.ImportPath == module+"/journal" })
		if files, _ := filepath.Glob("journal/*.go"); len(files) > 0 && !sawJournal {
			t.Errorf("%s %s: go list did not see the package journal", build.goos, build.tags)
		}
	}
}

// development packages are in builds with the tag dev, and in no other.
var development = []string{"views/gallery", "views/internal/fixtures"}

// What is for development alone isn't in a binary to ship; that the same list
// finds it under the tag shows that it would be seen.
func TestArchitecture_DevelopmentOnly(t *testing.T) {
	t.Parallel()
	for _, tags := range []string{"", "crashpoints", "dev", "agents"} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags="+tags, ".").Output()
		if err != nil {
			t.Fatalf("go list with the tags %q: %v", tags, err)
		}
		linked := strings.Fields(string(out))
		for _, dir := range development {
			if got, want := slices.Contains(linked, module+"/"+dir), tags == "dev"; got != want {
				t.Errorf("with the tags %q the binary contains %s: %v, want %v", tags, dir, got, want)
			}
		}
	}
}

// checkImports holds packages against arrows, reservations and purities.
func checkImports(pkgs []pkgInfo) []string {
	standard := map[string]bool{"C": true, "unsafe": true}
	for _, p := range pkgs {
		standard[p.ImportPath] = standard[p.ImportPath] || p.Standard
	}
	var bad []string
	for _, p := range pkgs {
		dir, ours := inModule(p.ImportPath)
		if !ours {
			continue
		}
		i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.from, dir) })
		if i < 0 {
			bad = append(bad, fmt.Sprintf("%s stands in no arrow: decide in arch_test.go what it may import", dir))
			continue
		}
		for _, imp := range p.Imports {
			if to, ours := inModule(imp); ours {
				if !slices.ContainsFunc(arrows[i].to, func(s string) bool { return matches(s, to) }) {
					bad = append(bad, fmt.Sprintf("%s imports %s: %s", dir, to, arrows[i].why))
				}
				continue
			}
			bad = append(bad, checkForeign(dir, imp, standard[imp])...)
		}
	}
	return bad
}

// checkForeign judges one import from outside this module.
func checkForeign(dir, imp string, standard bool) []string {
	var bad []string
	for _, r := range reservations {
		if slices.ContainsFunc(r.pkgs, func(p string) bool { return under(imp, p) }) &&
			!slices.ContainsFunc(r.by, func(s string) bool { return matches(s, dir) }) {
			bad = append(bad, fmt.Sprintf("%s imports %s: %s", dir, imp, r.why))
		}
	}
	i := slices.IndexFunc(purities, func(p pure) bool { return matches(p.pkgs, dir) })
	if i < 0 {
		return bad
	}
	below := func(p string) bool { return under(imp, p) }
	switch {
	case slices.ContainsFunc(purities[i].never, below):
		bad = append(bad, fmt.Sprintf("%s imports %s: a pure package does no I/O", dir, imp))
	case !standard && !slices.ContainsFunc(purities[i].beside, below):
		bad = append(bad, fmt.Sprintf("%s imports %s: a pure package needs the standard library only", dir, imp))
	}
	return bad
}

// inModule returns a package's folder in this module, "." for the root.
func inModule(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// matches says whether a folder fits a pattern: itself, or with /... all below it.
func matches(pattern, dir string) bool {
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return under(dir, root)
	}
	return pattern == dir
}

// under says whether a path is root or lies below it.
func under(p, root string) bool {
	return p == root || strings.HasPrefix(p, root+"/")
}

func TestArchitecture_Sources(t *testing.T) {
	t.Parallel()
	seen := 0
	for file, src := range sources(t, ".go", ".templ") {
		seen++
		for _, s := range checkSource(file, src) {
			t.Error(s)
		}
	}
	if seen == 0 {
		t.Error("saw no source file")
	}
}

// sources reads the files of this module that end in one of the suffixes, by
// slashed path from the root. Folders with a go.mod are modules of their own.
func sources(t *testing.T, suffixes ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." {
			_, noModule := os.Stat(filepath.Join(name, "go.mod"))
			if noModule == nil || d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(suffixes, filepath.Ext(name)) {
			return nil
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// checkSource holds one file against the rules on goroutines, contexts, waiting,
// raw HTML and the inputs of calls.
func checkSource(file string, src []byte) []string {
	if strings.HasSuffix(file, ".templ") {
		if bytes.Contains(src, []byte("templ.Raw")) {
			return []string{file + ": templ.Raw: only text that was cleaned may be trusted, by its type"}
		}
		return nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	v := visitor{names: importNames(f)}
	for name, at := range v.names {
		if strings.HasPrefix(name, ".") {
			v.say(f.Package, "dot import of %s hides what is used", at)
		}
	}
	isTest := strings.HasSuffix(file, "_test.go")
	v.starts = isTest || listed(starters, file)
	v.begins = isTest || file == "main.go" || path.Base(file) == "main.go" && under(file, "scripts") || listed(backgrounds, file)
	v.isTest = isTest
	v.clock = isTest || !under(file, "journal")
	v.cleans = file == cleaner
	ast.Inspect(f, v.visit)

	var bad []string
	for _, b := range v.bad {
		bad = append(bad, fmt.Sprintf("%s:%d: %s", file, fset.Position(b.pos).Line, b.text))
	}
	return bad
}

// listed says whether a file is in a table whose keys may hold a *.
func listed(table map[string]string, file string) bool {
	for pattern := range table {
		if ok, _ := path.Match(pattern, file); ok {
			return true
		}
	}
	return false
}

// importNames maps the names that a file gives to its imports to their paths; a
// dot import has its path after the dot.
func importNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			name += p
		}
		names[name] = p
	}
	return names
}

// visitor walks one file.
type visitor struct {
	names  map[string]string
	starts bool // may start goroutines
	begins bool // may begin a context
	clock  bool // may read the clock
	isTest bool
	cleans bool // may trust markup, once
	raws   int
	bad    []found
}

type found struct {
	pos  token.Pos
	text string
}

func (v *visitor) say(pos token.Pos, format string, args ...any) {
	v.bad = append(v.bad, found{pos, fmt.Sprintf(format, args...)})
}

func (v *visitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		if !v.starts {
			v.say(n.Pos(), "starts a goroutine: whoever starts one stops it and waits; add the file to starters in arch_test.go with who does")
		}
	case *ast.CallExpr:
		// A WaitGroup's or errgroup's Go starts one as well.
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Go" && len(n.Args) == 1 && !v.starts {
			v.say(n.Pos(), "starts a goroutine by .Go: see starters in arch_test.go")
		}
		v.readsInput(n)
	case *ast.CompositeLit:
		// An empty one is harmless.
		if id, ok := n.Type.(*ast.Ident); ok && id.Name == "SafeHTML" && len(n.Elts) > 0 && !v.cleans {
			v.say(n.Pos(), "makes SafeHTML: only clean does, by a filter")
		}
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok {
			v.use(n.Pos(), v.names[x.Name]+"."+n.Sel.Name)
		}
	}
	return true
}

// readsInput judges what reads the input of a call: a long one lies in a blob, and what
// stands in its place reads as an input that says nothing. An agent's own description of
// its call (told) is another thing: it is whole.
func (v *visitor) readsInput(n *ast.CallExpr) {
	fun, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || len(n.Args) == 0 || v.isTest {
		return
	}
	of, ok := fun.X.(*ast.Ident)
	if !ok || v.names[of.Name] != "encoding/json" || fun.Sel.Name != "Unmarshal" {
		return
	}
	if in, ok := n.Args[0].(*ast.SelectorExpr); ok && (in.Sel.Name == "Input" || in.Sel.Name == "Later") {
		if x, ok := in.X.(*ast.Ident); ok && x.Name != "t" && x.Name != "told" {
			v.say(n.Pos(), "reads the input of a call, which may lie in a blob: use journal.ReadInput, and Turn.WholeCall where all of it is needed")
		}
	}
}

// use judges one use of a package's name.
func (v *visitor) use(pos token.Pos, name string) {
	switch name {
	case "time.Sleep", "time.Tick":
		v.say(pos, "%s: wait on a signal or a clock, never on time", name)
	case "time.AfterFunc", "context.AfterFunc":
		if !v.starts {
			v.say(pos, "%s starts a goroutine: see starters in arch_test.go", name)
		}
	case "context.Background", "context.TODO":
		if !v.begins {
			v.say(pos, "%s: take the context from the caller", name)
		}
	case "time.Now", "time.Since", "time.Until":
		if !v.clock {
			v.say(pos, "%s: the domain has no clock; times are given to it", name)
		}
	case "github.com/a-h/templ.Raw":
		if v.raws++; !v.cleans || v.raws > 1 {
			v.say(pos, "templ.Raw: only text that was cleaned may be trusted, by its type, in one function")
		}
	}
}

// A guard that can't fail guards nothing: each has a sample that it must find,
// and a like one that it must leave alone.

func TestArchitecture_ImportGuardsCanFail(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ from, to, says string }{
		{"holdfast/journal", "strings", ""},
		{"holdfast/journal", "net/url", ""},
		{"holdfast/journal", "os", "no I/O"},
		{"holdfast/journal", "os/exec", "no I/O"},
		{"holdfast/journal", "net/http", "no I/O"},
		{"holdfast/journal", "database/sql", "SQL lives in store"},
		{"holdfast/journal", "log/slog", "no I/O"},
		{"holdfast/journal", "golang.org/x/text/unicode/norm", "standard library only"},
		{"holdfast/journal", "holdfast/journal/policy", "below all"},
		{"holdfast/journal", "holdfast/store", "below all"},
		{"holdfast/journal/policy", "mvdan.cc/sh/v3/syntax", ""},
		{"holdfast/journal/policy", "golang.org/x/text/unicode/norm", ""},
		{"holdfast/journal/policy", "holdfast/journal", ""},
		{"holdfast/journal/policy", "github.com/google/uuid", "standard library only"},
		{"holdfast/journal/policy", "os", "no I/O"},
		{"holdfast/store", "holdfast/journal", ""},
		{"holdfast/store", "holdfast/migrations", ""},
		{"holdfast/store", "database/sql", ""},
		{"holdfast/store/storetest", "modernc.org/sqlite", ""},
		{"holdfast/store", "holdfast/runner", "below everything"},
		{"holdfast/store", "holdfast/handlers", "below everything"},
		{"holdfast/store/storetest", "holdfast/views/pages", "below everything"},
		{"holdfast/store", "github.com/gofiber/fiber/v2", "only handlers speak HTTP"},
		{"holdfast/runner", "holdfast/store", ""},
		{"holdfast/runner", "holdfast/runner/runbook", ""},
		{"holdfast/runner", "holdfast/handlers", "meet only in the journal"},
		{"holdfast/runner", "holdfast/views/components", "meet only in the journal"},
		{"holdfast/runner", "github.com/jmoiron/sqlx", "SQL lives in store"},
		{"holdfast/runner", "github.com/valyala/fasthttp", "only handlers speak HTTP"},
		{"holdfast/runner/runbook", "holdfast/runner", ""},
		{"holdfast/runner/runbook", "holdfast/store", "hands facts to the runner"},
		{"holdfast/runner/acp/wire", "encoding/json", ""},
		{"holdfast/runner/acp/wire", "os/exec", "no I/O"},
		{"holdfast/runner/acp/wire", "golang.org/x/sys/unix", "standard library only"},
		{"holdfast/runner/acp/wire", "holdfast/journal", "know nothing of us"},
		{"holdfast/runner/tool", "holdfast/store/storetest", "hands facts to the runner"},
		{"holdfast/views/pages", "holdfast/views/components", ""},
		{"holdfast/views/pages", "github.com/a-h/templ/runtime", ""},
		{"holdfast/views/components", "holdfast/views/pages", "pages are made of components"},
		{"holdfast/views/pages", "holdfast/store", "neither database nor runner"},
		{"holdfast/views", "holdfast/runner", "neither database nor runner"},
		{"holdfast/views/components", "holdfast/handlers", "pages are made of components"},
		{"holdfast/views", "holdfast/handlers", "neither database nor runner"},
		{"holdfast/handlers", "holdfast/store", ""},
		{"holdfast/handlers", "holdfast/static", ""},
		{"holdfast/handlers", "holdfast/runner", "the runner will see it"},
		{"holdfast/handlers", "holdfast/runner/tool", "the runner will see it"},
		{"holdfast/handlers", "github.com/lib/pq", "SQL lives in store"},
		{"holdfast", "holdfast/runner", ""},
		{"holdfast", "database/sql", "SQL lives in store"},
		{"holdfast", "github.com/a-h/templ", "only views render"},
		{"holdfast", "holdfast/e2e", "main wires all"},
		{"holdfast/migrations", "holdfast/journal", "SQL files"},
		{"holdfast/static", "holdfast/journal", "assets"},
		{"holdfast/scripts/gotest", "holdfast/store", "tools of the Makefile"},
		{"holdfast/bench", "holdfast/runner", "measures"},
		{"holdfast/e2e/fakeagent", "holdfast/runner/acp/wire", ""},
		{"holdfast/e2e/fakeagent", "holdfast/runner/acp", "the protocol alone"},
		{"holdfast/e2e", "holdfast/runner/acp/wire", "from outside"},
		{"holdfast/e2e", "database/sql", ""},
		{"holdfast/e2e", "holdfast/store", "from outside"},
		{"holdfast/util", "strings", "stands in no arrow"},
	} {
		bad := checkImports([]pkgInfo{
			{ImportPath: tt.from, Imports: []string{tt.to}},
			{ImportPath: tt.to, Standard: !strings.Contains(strings.SplitN(tt.to, "/", 2)[0], ".") && !under(tt.to, module)},
		})
		// The imported package is judged too, but of ours it is known by an arrow.
		wantOne(t, tt.from+" → "+tt.to, bad, tt.says)
	}
}

func TestArchitecture_SourceGuardsCanFail(t *testing.T) {
	t.Parallel()
	const work = "package x\n\nfunc f() { go f() }\n"
	for _, tt := range []struct{ file, src, says string }{
		{"store/claims.go", work, "starts a goroutine"},
		{"runner/runbook/agent.go", work, "starts a goroutine"},
		{"store/writer.go", work, ""},
		{"runner/tool/shell.go", work, ""},
		{"store/claims_test.go", work, ""},
		{"store/claims.go", "package x\n\nimport \"sync\"\n\nfunc f(w *sync.WaitGroup) { w.Go(func() {}) }\n", "by .Go"},
		{"store/claims.go", "package x\n\nimport \"time\"\n\nfunc f() { time.AfterFunc(1, f) }\n", "time.AfterFunc starts"},
		{"store/claims.go", "package x\n\nimport \"context\"\n\nvar c = context.Background()\n", "take the context"},
		{"store/claims.go", "package x\n\nimport \"context\"\n\nvar c = context.TODO()\n", "take the context"},
		{"store/claims.go", "package x\n\nimport ctx \"context\"\n\nvar c = ctx.Background()\n", "take the context"},
		{"store/claims.go", "package x\n\nimport . \"context\"\n\nvar c = Background()\n", "dot import of context"},
		{"main.go", "package x\n\nimport \"context\"\n\nvar c = context.Background()\n", ""},
		{"handlers/main.go", "package x\n\nimport \"context\"\n\nvar c = context.Background()\n", "take the context"},
		{"store/claims_test.go", "package x\n\nimport \"context\"\n\nvar c = context.Background()\n", ""},
		{"store/claims_test.go", "package x\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", "never on time"},
		{"main.go", "package x\n\nimport \"time\"\n\nvar c = time.Tick(1)\n", "never on time"},
		{"main.go", "package x\n\nimport \"time\"\n\nvar wait = time.Sleep\n", "never on time"},
		{"journal/claim.go", "package x\n\nimport \"time\"\n\nvar n = time.Now()\n", "has no clock"},
		{"journal/claim.go", "package x\n\nimport \"time\"\n\nvar d = time.Second\n", ""},
		{"store/claims.go", "package x\n\nimport \"time\"\n\nvar n = time.Now()\n", ""},
		{"views/pages/a_templ.go", "package x\n\nimport \"github.com/a-h/templ\"\n\nvar r = templ.Raw(\"\")\n", "templ.Raw"},
		{"views/components/entry.go", "package x\n\nvar h = SafeHTML{\"<b>\"}\n", "makes SafeHTML"},
		{"views/components/entry.go", "package x\n\nvar h = SafeHTML{}\n", ""},
		{cleaner, "package x\n\nimport \"github.com/a-h/templ\"\n\nvar r = templ.Raw(\"\")\n", ""},
		{cleaner, "package x\n\nimport \"github.com/a-h/templ\"\n\nvar r, s = templ.Raw(\"\"), templ.Raw(\"\")\n", "templ.Raw"},
		{"views/pages/a.templ", "package x\n\ntempl a() {\n\t@templ.Raw(x)\n}\n", "templ.Raw"},
		{"views/pages/a.templ", "package x\n\ntempl a() {\n\t<p>raw</p>\n}\n", ""},
		{"runner/acp/tool.go", "package x\n\nimport \"encoding/json\"\n\nvar e = json.Unmarshal(c.Input, nil)\n", "may lie in a blob"},
		{"runner/acp/tool.go", "package x\n\nimport \"encoding/json\"\n\nvar e = json.Unmarshal(c.Later, nil)\n", "may lie in a blob"},
		{"runner/acp/tool.go", "package x\n\nimport \"encoding/json\"\n\nvar e = json.Unmarshal(t.Input, nil)\n", ""},
		{"runner/acp/tool_test.go", "package x\n\nimport \"encoding/json\"\n\nvar e = json.Unmarshal(c.Input, nil)\n", ""},
		{"store/claims.go", "package x\n\nfunc {\n", "expected"},
	} {
		wantOne(t, tt.file+"\n"+tt.src, checkSource(tt.file, []byte(tt.src)), tt.says)
	}
}

// wantOne checks that a guard found one thing saying says, or nothing if that is empty.
func wantOne(t *testing.T, sample string, bad []string, says string) {
	t.Helper()
	if says == "" && len(bad) == 0 {
		return
	}
	if says != "" && slices.ContainsFunc(bad, func(s string) bool { return strings.Contains(s, says) }) {
		return
	}
	t.Errorf("%s\n  found %q\n  want  %q", sample, bad, says)
}
