package policy

import (
	"path"
	"strings"
)

// scan is one pass over the arguments of a command with a known usage.
type scan struct {
	usage
	plain   []word // arguments that aren't options
	globsIn []word // values that choose files
	pattern bool   // what to look for is still to come
	ended   bool   // -- was seen
	why     string
}

// prove checks the command against its usage, adds resources for files of its
// arguments, and says what keeps a preset from allowing it, or "". A command
// that no preset knows needs no proof: no preset allows it.
func (w *walker) prove(words []word) string {
	u, args, known := usageOf(words)
	if !known {
		return ""
	}
	if u.check != nil {
		if why := u.check(args); why != "" {
			return why
		}
	}
	if u.loose {
		return w.looseGlobs(args)
	}
	test := words[0].value == "test" || words[0].value == "["
	s := scan{usage: u, pattern: u.pattern}
	for i := 0; i < len(args); i++ {
		if test && operand(args, i) {
			continue
		}
		i += s.argument(args, i)
	}
	for _, a := range s.plain {
		s.fail(w.argumentFile(a, s.usage, words[0].value))
	}
	for _, g := range s.globsIn {
		if globSecret(g.value) || strings.HasPrefix(g.value, "/") || strings.HasPrefix(g.value, "~") || strings.Contains(g.value, "..") {
			s.fail("it chooses files that may be secret or outside the workspace")
		}
	}
	return s.why
}

func (s *scan) fail(why string) {
	if s.why == "" {
		s.why = why
	}
}

// looseGlobs takes the patterns among arguments that are harmless otherwise:
// the shell turns them into the names of files.
func (w *walker) looseGlobs(args []word) string {
	for _, a := range args {
		if a.glob && (!a.static || a.brace) {
			return "it lists files by a pattern that is computed"
		}
		if !a.glob {
			continue
		}
		if why := w.argumentFile(a, usage{names: true}, ""); why != "" {
			return why
		}
	}
	return ""
}

// argument judges args[i] and returns how many words behind it are its value.
func (s *scan) argument(args []word, i int) int {
	a := args[i]
	switch {
	case !a.static || a.brace:
		s.fail("an argument isn't known before it runs")
	case a.glob && strings.IndexByte("*?[-", a.value[0]) >= 0 && (!s.free && !s.tame || a.value[0] == '-'):
		s.fail("a file's name could be taken for an option")
	case s.ended || a.value == "-" || !strings.HasPrefix(a.value, "-"):
		s.positional(a)
	case a.value == "--":
		s.ended = true
	case s.dashed != "":
		name, _, _ := strings.Cut(strings.TrimPrefix(a.value[1:], "-"), "=")
		s.option(a, s.dashed, name)
	case strings.HasPrefix(a.value, "--"):
		return s.longOption(args, i)
	default:
		return s.cluster(args, i)
	}
	return 0
}

// positional takes an argument that isn't an option. The first one of grep is
// what to look for, unless an option gave that.
func (s *scan) positional(a word) {
	if s.pattern {
		s.pattern = false
		return
	}
	s.plain = append(s.plain, a)
}

func (s *scan) option(a word, known, name string) {
	if s.free {
		return
	}
	for _, k := range strings.Fields(known) {
		if k == name {
			return
		}
	}
	s.fail("the option " + a.text + " isn't known to be harmless")
}

func (s *scan) longOption(args []word, i int) int {
	name, value, joined := strings.Cut(args[i].value[2:], "=")
	if name == "regexp" || name == "files" || name == "type-list" {
		s.pattern = false
	}
	for _, k := range strings.Fields(s.globbed) {
		if k != name {
			continue
		}
		if joined {
			s.globsIn = append(s.globsIn, literal(value))
			return 0
		}
		return s.globValue(args, i)
	}
	s.option(args[i], s.long, name)
	return 0
}

// globValue takes the next word as a value that chooses files.
func (s *scan) globValue(args []word, i int) int {
	if i+1 >= len(args) || !args[i+1].exact() {
		s.fail("an argument isn't known before it runs")
		return 0
	}
	s.globsIn = append(s.globsIn, args[i+1])
	return 1
}

// cluster judges joined short options: -rn, -A3, -ofile.
func (s *scan) cluster(args []word, i int) int {
	letters := args[i].value[1:]
	for j, c := range letters {
		last := j+len(string(c)) == len(letters)
		switch {
		case strings.ContainsRune(s.value, c):
			if c == 'e' {
				s.pattern = false
			}
			return s.next(last, i+1 < len(args) && args[i+1].exact())
		case strings.ContainsRune(s.count, c):
			return s.next(last, i+1 < len(args) && args[i+1].exact() && isCount(args[i+1].value))
		case strings.ContainsRune(s.globs, c):
			if last {
				return s.globValue(args, i)
			}
			s.globsIn = append(s.globsIn, literal(letters[j+1:]))
			return 0
		case strings.ContainsRune(s.rest, c):
			return 0
		case s.free || strings.ContainsRune(s.short, c) || c >= '0' && c <= '9':
		default:
			s.fail("the option -" + string(c) + " isn't known to be harmless")
			return 0
		}
	}
	return 0
}

// next is how many words a value takes behind its option.
func (s *scan) next(last, fits bool) int {
	if last && fits {
		return 1
	}
	return 0
}

func isCount(s string) bool {
	return s != "" && strings.Trim(s, "+-0123456789") == ""
}

// operand reports an operand of test that may be computed, because its place
// keeps it from being taken for an operator: -n X, X = Y.
func operand(args []word, i int) bool {
	if len(args) > 0 && args[len(args)-1].value == "]" {
		args = args[:len(args)-1]
	}
	if i >= len(args) {
		return true // the closing bracket
	}
	if len(args) > 0 && args[0].exact() && args[0].value == "!" {
		args, i = args[1:], i-1
	}
	if i < 0 || args[i].static {
		return false
	}
	unquoted := !strings.HasPrefix(args[i].text, `"`)
	switch {
	case unquoted:
		return false
	case len(args) == 2:
		return i == 1 && args[0].exact()
	case len(args) == 3:
		return i != 1 && args[1].exact() && strings.Contains(" = == != -eq -ne -lt -le -gt -ge ", " "+args[1].value+" ")
	}
	return false
}

// argumentFile adds what a file argument of a known command means and says
// what keeps it from being proven, or "".
func (w *walker) argumentFile(a word, u usage, head string) string {
	if !u.names && !u.contents || a.value == "-" || a.value == "" || a.exact() && neutralFiles[a.value] {
		return ""
	}
	if head == "git" {
		return w.gitArgument(a)
	}
	for _, p := range w.places(a) {
		if why := w.filePlace(p, a.glob, u.contents); why != "" {
			return why
		}
	}
	return ""
}

func (w *walker) filePlace(p place, glob, contents bool) string {
	if i := strings.IndexAny(p.abs, "*?["); glob && i >= 0 {
		// The folder that the pattern starts from is what is entered.
		p.abs = path.Dir(p.abs[:i] + "x")
		contents = false
	}
	switch {
	case p.unsure != "":
		return p.unsure
	case !p.inside && contents:
		w.add(external(p.folder(), w.home))
		w.add(Resource{Permission: PermissionRead, Value: p.abs, Neutral: true})
	case !p.inside:
		w.add(external(p.abs, w.home))
	case contents && glob && globSecret(p.rel):
		return "it may read a file that is asked for"
	case contents && glob:
	case contents:
		w.add(Resource{Permission: PermissionRead, Value: p.rel, Neutral: !secret(p.rel)})
	}
	return ""
}

// gitArgument judges a revision or path of git: a path may follow a colon, and
// git itself reads patterns in it.
func (w *walker) gitArgument(a word) string {
	name := a.value
	if strings.HasPrefix(name, ":") && !strings.HasPrefix(name, ":!") {
		return "git reads this path in a way that isn't analysed"
	}
	if _, file, ok := strings.Cut(name, ":"); ok && !strings.HasPrefix(name, ":") {
		name = file
	}
	if strings.Contains(name, "..") && !strings.Contains(name, "/") && strings.Trim(name, ".") != "" || name == "" {
		return "" // a range of revisions: main..topic
	}
	a.value = name
	glob := a.glob || strings.ContainsAny(name, "*?[")
	for _, p := range w.places(a) {
		if why := w.filePlace(p, glob, true); why != "" {
			return why
		}
	}
	return ""
}
