package policy

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word reads a word and walks what the shell runs to expand it.
func (w *walker) word(n *syntax.Word) word {
	if n == nil {
		return word{static: true}
	}
	out, problem := readWord(w.src, n)
	if problem != "" {
		w.opaque(problem)
	}
	w.parts(n.Parts)
	return out
}

func (w *walker) parts(parts []syntax.WordPart) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxDepth {
		w.opaque("it is nested too deeply")
		return
	}
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if hidesExpansion(p.Value) {
				w.opaque("it holds an expansion that isn't analysed")
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			w.parts(p.Parts)
		case *syntax.CmdSubst:
			w.substitution(p)
		case *syntax.ProcSubst:
			w.apart(p.Stmts)
		case *syntax.ArithmExp:
			if p.Bracket {
				w.opaque("it uses $[…], which sh reads differently")
			}
			w.arithm(p.X)
		case *syntax.ParamExp:
			w.param(p)
		default:
			w.opaque("it uses an expansion that isn't analysed")
		}
	}
}

// hidesExpansion reports an expansion that the parser left in a literal.
func hidesExpansion(lit string) bool {
	for i := 0; i < len(lit); i++ {
		switch {
		case lit[i] == '\\':
			i++
		case lit[i] == '`', lit[i] == '$' && i+1 < len(lit) && strings.IndexByte("({[", lit[i+1]) >= 0:
			return true
		}
	}
	return false
}

// apart walks statements that run in a process of their own.
func (w *walker) apart(stmts []*syntax.Stmt) {
	before := w.dirs
	w.stmts(stmts)
	w.dirs = before
}

func (w *walker) substitution(c *syntax.CmdSubst) {
	if c.TempFile || c.ReplyVar {
		w.opaque("it uses a substitution that sh reads differently")
	}
	if c.Backquotes && strings.ContainsAny(source(w.src, c), "\\\"'#<") {
		w.opaque("it quotes inside backquotes, which shells read differently")
	}
	w.apart(c.Stmts)
}

// param walks ${…}. What evaluates a value as code, or is quoted so that
// shells disagree where it ends, is opaque.
func (w *walker) param(p *syntax.ParamExp) {
	if p.Excl || p.Width || p.IsSet || p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Param == nil {
		w.opaque("it expands a variable whose name is computed")
	}
	if strings.ContainsAny(source(w.src, p), "'\"\\`") {
		w.opaque("it quotes inside ${…}, which shells read differently")
	}
	if p.Index != nil {
		w.arithm(p.Index)
	}
	if p.Slice != nil {
		w.arithm(p.Slice.Offset)
		w.arithm(p.Slice.Length)
	}
	if p.Repl != nil {
		w.word(p.Repl.Orig)
		w.word(p.Repl.With)
	}
	if p.Exp == nil {
		return
	}
	value := w.word(p.Exp.Word)
	switch p.Exp.Op {
	case syntax.OtherParamOps:
		w.opaque("it evaluates the value of a variable (${x@…})")
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Param != nil {
			w.setName(p.Param.Value)
		}
		w.tainted = w.tainted || !plainValue(value)
	default: // it only picks or cuts a value, which the text shows
	}
}

var number = regexp.MustCompile(`^(0[xX][0-9a-fA-F]+|[0-9]+(#[0-9a-zA-Z]+)?)$`)

// arithm walks an arithmetic expression. A shell evaluates the value of a
// variable in it as an expression again, which may run commands.
func (w *walker) arithm(x syntax.ArithmExpr) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxDepth {
		w.opaque("it is nested too deeply")
		return
	}
	switch x := x.(type) {
	case nil:
	case *syntax.BinaryArithm:
		if name, ok := x.X.(*syntax.Word); ok && assigns(x.Op) {
			w.setName(name.Lit())
		}
		w.arithm(x.X)
		w.arithm(x.Y)
	case *syntax.UnaryArithm:
		w.arithm(x.X)
	case *syntax.ParenArithm:
		w.arithm(x.X)
	case *syntax.Word:
		if x == nil {
			return
		}
		read := w.word(x)
		switch {
		case read.exact() && number.MatchString(read.value):
		case read.exact() && identifier(read.value), read.value == "@", read.value == "*":
			w.counts = true
		case read.static:
			w.opaque("it calculates with a text, which may run a command")
		default:
			w.counts = true
		}
	default:
		w.opaque("it calculates in a way that isn't analysed")
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	default:
		return false
	}
}

// setName notes that a variable gets a value.
func (w *walker) setName(name string) {
	switch {
	case !identifier(name):
		w.opaque("it sets a variable whose name is computed")
	case dangerousVariable(name):
		w.opaque("it sets " + name + ", which changes what other commands do")
	}
}

// testClause walks [[ … ]]. sh has no such form: it runs what stands behind ||
// in it and writes to what stands behind >.
func (w *walker) testClause(c *syntax.TestClause) {
	if strings.ContainsAny(source(w.src, c), "|&;<>()") {
		w.differs = "sh would read the words between [[ and ]] as commands"
	}
	w.testExpr(c.X)
	w.neutral(source(w.src, c))
}

func (w *walker) testExpr(x syntax.TestExpr) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxDepth {
		w.opaque("it is nested too deeply")
		return
	}
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.testNumber(x.X)
			w.testNumber(x.Y)
			return
		default: // it compares texts or files
		}
		w.testExpr(x.X)
		w.testExpr(x.Y)
	case *syntax.UnaryTest:
		if word, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) && !identifier(word.Lit()) {
			w.opaque("it tests a variable whose name is computed")
		}
		w.testExpr(x.X)
	case *syntax.ParenTest:
		w.testExpr(x.X)
	case *syntax.Word:
		w.word(x)
	default:
		w.opaque("it tests in a way that isn't analysed")
	}
}

// testNumber walks an operand that the shell evaluates as arithmetic.
func (w *walker) testNumber(x syntax.TestExpr) {
	if word, ok := x.(*syntax.Word); ok {
		w.arithm(word)
		return
	}
	w.opaque("it tests in a way that isn't analysed")
}
