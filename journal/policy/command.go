package policy

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call walks one simple command and returns the folders after its success.
func (w *walker) call(c *syntax.CallExpr, redirs []*syntax.Redirect) dirs {
	if ok, done := w.readLine(c); done {
		return ok
	}
	assigned := w.assignments(c.Assigns)
	if len(c.Args) == 0 {
		w.neutral(join(assigned))
		return w.dirs
	}
	words := make([]word, len(c.Args))
	for i, arg := range c.Args {
		words[i] = w.word(arg)
	}
	head := words[0]
	if !head.exact() || head.value == "" {
		w.opaque("the name of a command is computed")
		return w.dirs
	}
	if strings.Contains(head.value, "=") && !strings.HasPrefix(head.text, "'") {
		words[0].text = "'" + head.text + "'" // not to be taken for an assignment
	}
	if len(assigned) == 0 {
		if ok, done := w.builtin(words); done {
			return ok
		}
	} else if shellState[head.value] {
		w.opaque("it sets a variable for a command of the shell itself")
	}
	w.simple(assigned, words, fedText(redirs))
	return w.dirs
}

// assignments walks X=1 in front of a command, or alone, and returns how they
// read.
func (w *walker) assignments(list []*syntax.Assign) []word {
	var out []word
	for _, a := range list {
		out = append(out, w.assignment(a))
	}
	return out
}

func (w *walker) assignment(a *syntax.Assign) word {
	if a.Name == nil { // declare "$x"
		w.opaque("it sets a variable whose name is computed")
		return w.word(a.Value)
	}
	w.setName(a.Name.Value)
	if a.Index != nil {
		w.differs = "sh doesn't know variables with an index"
		w.arithm(a.Index)
	}
	if a.Array != nil {
		w.array(a.Array)
	}
	raw := word{text: source(w.src, a), could: "*"}
	if a.Naked {
		return literal(a.Name.Value)
	}
	value := w.word(a.Value)
	w.tainted = w.tainted || !plainValue(value)
	if a.Array != nil || a.Index != nil || a.Append || !value.exact() {
		return raw
	}
	return literal(a.Name.Value + "=" + value.value)
}

func (w *walker) array(a *syntax.ArrayExpr) {
	w.tainted = true
	for _, e := range a.Elems {
		if e.Index != nil {
			w.arithm(e.Index)
		}
		w.listed(w.word(e.Value))
	}
}

// listed takes a word that isn't a command's: as a pattern it shows the names
// of files.
func (w *walker) listed(a word) {
	if !a.glob {
		return
	}
	if !a.static || a.brace {
		w.opaque("it lists files by a pattern that is computed")
	} else if why := w.argumentFile(a, usage{names: true}, ""); why != "" {
		w.opaque(why)
	}
}

// declClause walks declare, export, local, … as bash parses them.
func (w *walker) declClause(c *syntax.DeclClause) {
	words := []word{literal(c.Variant.Value)}
	if c.Variant.Value == "nameref" {
		w.opaque("it makes one variable stand for another")
	}
	for _, a := range c.Args {
		if a.Naked && a.Name == nil {
			words = append(words, w.word(a.Value))
			continue
		}
		words = append(words, w.assignment(a))
	}
	w.declare(words)
}

// declare judges the words of declare, export, local, …: plain assignments are
// as neutral as without it; what exports or has options is asked as a command.
func (w *walker) declare(words []word) {
	neutral := words[0].value != "export" && len(words) > 1
	for _, arg := range words[1:] {
		name, _, set := strings.Cut(arg.text, "=")
		switch {
		case arg.exact() && strings.HasPrefix(arg.value, "-"):
			neutral = false
			if strings.Trim(arg.value, "-xrgpaA") != "" {
				w.opaque("it declares a variable that changes how values are read")
			}
		case !arg.static && !set, arg.glob && !set:
			w.opaque("it sets a variable whose name is computed")
		default:
			w.setName(strings.TrimSuffix(strings.Trim(name, "'"), "+"))
			_, value, _ := strings.Cut(arg.value, "=")
			if strings.ContainsAny(value, "($`") && arg.static {
				w.opaque("it declares a list, whose text is run again")
			}
			w.tainted = w.tainted || set && (!arg.exact() || !plainValue(literal(value)))
		}
	}
	r := Resource{Permission: PermissionShell, Value: join(words), Could: couldBe(words), Neutral: neutral}
	if neutral {
		r.Could = ""
	}
	w.add(r)
}

// fedText reports that a text in the command itself is the input.
func fedText(redirs []*syntax.Redirect) bool {
	for _, r := range redirs {
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			return true
		default: // a file or a descriptor, which redirects see to
		}
	}
	return false
}

// simple adds the resource of a command that the shell starts.
func (w *walker) simple(assigned, words []word, fed bool) {
	all := append(assigned, words...)
	r := Resource{Permission: PermissionShell, Value: join(all), Could: couldBe(all)}
	if also := join(plainReading(words)); also != r.Value {
		r.Also = also
	}
	base := strings.ToLower(path.Base(words[0].value))
	if asksAlways[base] {
		r.AlwaysAsk, r.Why = true, base+" acts as another person"
	}
	if why := hides(base, words, fed); why != "" {
		w.opaque(why)
		w.script(base, words[1:])
	}
	if len(assigned) == 0 {
		if why := w.prove(words); why != "" && !r.AlwaysAsk {
			r.Unproven, r.Why = true, why
		}
	}
	w.add(r)
}

// script looks into the text that a shell is given to run: the command is opaque all the
// same, but a rule that denies a part of it holds.
func (w *walker) script(base string, args []word) {
	text := scriptOf(args)
	if w.depth++; !shells[strings.TrimRight(base, "0123456789.-")] || w.depth > maxDepth || unreadable(text) != "" {
		w.depth--
		return
	}
	defer func() { w.depth-- }()
	parsed, err := parse(text, syntax.LangBash)
	if err != nil {
		return
	}
	inner := newWalker(text, w.root, w.home)
	inner.dirs, inner.depth = w.dirs, w.depth
	inner.stmts(parsed.Stmts)
	for _, r := range inner.out {
		w.add(r)
	}
}

// scriptOf is the text behind a shell's option -c; "": there is none that is known.
func scriptOf(args []word) string {
	given := false
	for i := 0; i < len(args); i++ {
		switch a := args[i].value; {
		case !args[i].exact():
			return ""
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			given = given || a[1] != '-' && strings.Contains(a, "c")
			if strings.HasSuffix(strings.ToLower(a), "o") && a[1] != '-' { // takes a name
				i++
			}
		case given:
			return a
		default:
			return ""
		}
	}
	return ""
}

// plainReading is the command as a rule would most likely name it.
func plainReading(words []word) []word {
	head := literal(path.Base(words[0].value))
	rest := words[1:]
	if head.value == "git" {
		rest = withoutGlobals(rest)
	}
	return append([]word{head}, rest...)
}

// withoutGlobals drops git's options in front of its subcommand.
func withoutGlobals(args []word) []word {
	for len(args) > 0 && args[0].static && strings.HasPrefix(args[0].value, "-") {
		if gitGlobals[args[0].value] && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	return args
}

// gitGlobals are git's options in front of the subcommand whose value is the
// next word.
var gitGlobals = set("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source")

// readLine takes the common IFS=… read -r name: it sets IFS for read alone.
func (w *walker) readLine(c *syntax.CallExpr) (ok dirs, done bool) {
	if len(c.Assigns) != 1 || len(c.Args) == 0 || c.Args[0].Lit() != "read" {
		return w.dirs, false
	}
	a := c.Assigns[0]
	if a.Name == nil || a.Name.Value != "IFS" || a.Index != nil || a.Array != nil || a.Append || !w.word(a.Value).exact() {
		return w.dirs, false
	}
	words := make([]word, len(c.Args))
	for i, arg := range c.Args {
		words[i] = w.word(arg)
	}
	return w.dirs, w.names(words)
}

// shellState are the commands that change the shell itself, so that the words
// in front of them would last.
var shellState = set(": cd set read unset declare typeset local export readonly exit return break continue shift")
