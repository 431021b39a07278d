package policy

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// dirs are the folders that a command may be in, absolute; lost if they can't
// be told.
type dirs struct {
	list []string
	lost bool
}

const maxDirs = 8

func (d dirs) union(o dirs) dirs {
	out := dirs{list: slices.Clone(d.list), lost: d.lost || o.lost}
	for _, dir := range o.list {
		if !slices.Contains(out.list, dir) {
			out.list = append(out.list, dir)
		}
	}
	out.lost = out.lost || len(out.list) > maxDirs
	return out
}

// stmts walks statements that run one after the other and returns the folders
// after the last one if it succeeds. w.dirs holds those after either outcome.
func (w *walker) stmts(list []*syntax.Stmt) dirs {
	ok := w.dirs
	for _, s := range list {
		ok = w.stmt(s)
	}
	return ok
}

func (w *walker) stmt(s *syntax.Stmt) dirs {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxDepth {
		w.opaque("it is nested too deeply")
		return w.dirs
	}
	w.redirects(s)
	if s.Cmd == nil {
		return w.dirs
	}
	before := w.dirs
	ok := w.command(s)
	if s.Background || s.Coprocess || s.Disown {
		w.dirs = w.dirs.union(before)
		return w.dirs
	}
	if s.Negated {
		return w.dirs
	}
	return ok
}

func (w *walker) command(s *syntax.Stmt) dirs {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		return w.call(c, s.Redirs)
	case *syntax.BinaryCmd:
		return w.binary(c)
	case *syntax.Subshell:
		before := w.dirs
		w.stmts(c.Stmts)
		w.dirs = before
	case *syntax.Block:
		return w.stmts(c.Stmts)
	case *syntax.IfClause:
		w.ifClause(c)
	case *syntax.WhileClause:
		w.loop(c)
		w.stmts(c.Cond)
		w.stmts(c.Do)
	case *syntax.ForClause:
		w.forClause(c)
	case *syntax.CaseClause:
		w.caseClause(c)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			w.stmt(c.Stmt)
		}
	case *syntax.CoprocClause:
		w.opaque("it runs a command beside itself (coproc)")
		w.stmt(c.Stmt)
	case *syntax.TestClause:
		w.testClause(c)
	case *syntax.ArithmCmd:
		w.differs = "sh would run the words between (( and )) as a command"
		w.arithm(c.X)
		w.neutral(source(w.src, c))
	case *syntax.DeclClause:
		w.declClause(c)
	case *syntax.FuncDecl:
		w.opaque("it defines a function, which changes what a name runs")
		w.stmt(c.Body)
	default:
		w.opaque("it uses a form that isn't analysed")
	}
	return w.dirs
}

func (w *walker) binary(c *syntax.BinaryCmd) dirs {
	before := w.dirs
	ok := w.stmt(c.X)
	all := w.dirs
	switch c.Op {
	case syntax.AndStmt:
		w.dirs = ok
		ok = w.stmt(c.Y)
		w.dirs = w.dirs.union(all)
		return ok
	case syntax.OrStmt:
		w.stmt(c.Y)
		w.dirs = w.dirs.union(all)
	default: // pipes: shells differ in which side they run in themselves
		w.dirs = before
		w.stmt(c.Y)
		w.dirs = w.dirs.union(all).union(before)
	}
	return w.dirs
}

func (w *walker) ifClause(c *syntax.IfClause) {
	w.stmts(c.Cond)
	after := w.dirs
	w.stmts(c.Then)
	then := w.dirs
	w.dirs = after
	if c.Else != nil {
		w.ifClause(c.Else)
	}
	w.dirs = w.dirs.union(then)
}

func (w *walker) forClause(c *syntax.ForClause) {
	w.loop(c)
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		w.setName(l.Name.Value)
		for _, item := range l.Items {
			value := w.word(item)
			w.listed(value)
			w.tainted = w.tainted || !plainValue(value)
		}
		if !l.InPos.IsValid() || c.Select {
			w.tainted = true
		}
	case *syntax.CStyleLoop:
		w.arithm(l.Init)
		w.arithm(l.Cond)
		w.arithm(l.Post)
	default:
		w.opaque("it uses a loop that isn't analysed")
	}
	before := w.dirs
	w.stmts(c.Do)
	w.dirs = w.dirs.union(before)
}

// loop gives up on the folder if a body changes it: the second round starts
// somewhere else than the first.
func (w *walker) loop(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst:
			return false // it moves only itself
		}
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			if head, _ := readWord(w.src, call.Args[0]); head.value == "cd" {
				w.dirs.lost = true
			}
		}
		return true
	})
}

func (w *walker) caseClause(c *syntax.CaseClause) {
	w.word(c.Word)
	before := w.dirs
	all := before
	for _, item := range c.Items {
		for _, pattern := range item.Patterns {
			w.word(pattern)
		}
		// A body may fall through into the next one.
		w.dirs = all
		w.stmts(item.Stmts)
		all = all.union(w.dirs)
	}
	w.dirs = all
}
