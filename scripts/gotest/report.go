package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// longest is how many lines of one test's output are printed; of more, the
// middle is left out.
const longest = 400

// test is one test or subtest of a package.
type test struct {
	name    string
	outcome string // pass, fail, skip, or "" while it runs
	output  []string
}

// pkg collects one package until it ends.
type pkg struct {
	path   string
	tests  []*test
	byName map[string]*test
	output []string // what belongs to no test
	failed bool
	ended  bool
}

// report turns events into text and counts.
type report struct {
	out    io.Writer
	show   bool
	pkgs   map[string]*pkg
	builds map[string][]string // compiler output by import path
	total  counts
}

func newReport(out io.Writer, show bool) *report {
	return &report{out: out, show: show, pkgs: map[string]*pkg{}, builds: map[string][]string{}}
}

func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format, args...)
}

// read takes events until the stream ends. A line that is none is passed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				r.add(e)
			} else {
				r.printf("%s\n", strings.TrimRight(line, "\n"))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	if e.Action == "build-output" {
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.pkgs[e.Package]
	if p == nil {
		p = &pkg{path: e.Package, byName: map[string]*test{}}
		r.pkgs[e.Package] = p
	}
	switch e.Action {
	case "output":
		r.output(p, e)
	case "run":
		p.test(e.Test)
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.test(e.Test).end(e.Action)
			return
		}
		p.failed = e.Action == "fail"
		r.end(p, e.Elapsed)
		r.lines(r.builds[e.FailedBuild])
	}
}

func (r *report) output(p *pkg, e event) {
	if isNoise(e.Output) {
		return
	}
	if r.show {
		r.printf("%s", e.Output)
	}
	if e.Test == "" {
		p.output = append(p.output, e.Output)
		return
	}
	t := p.test(e.Test)
	t.output = append(t.output, e.Output)
}

// isNoise says whether a line of output only repeats what other events say.
func isNoise(line string) bool {
	line = strings.TrimLeft(line, " ")
	for _, prefix := range []string{"=== RUN ", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == "PASS\n" || line == "FAIL\n" || strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t")
}

func (p *pkg) test(name string) *test {
	t := p.byName[name]
	if t == nil {
		t = &test{name: name}
		p.byName[name] = t
		p.tests = append(p.tests, t)
	}
	return t
}

// end notes an outcome. Of a test that ran several times (-count) the worst counts.
func (t *test) end(outcome string) {
	if t.outcome == "fail" || t.outcome == "skip" && outcome == "pass" {
		return
	}
	t.outcome = outcome
}

// finish ends the packages that go test never ended, as failed.
func (r *report) finish() {
	for _, p := range r.pkgs {
		if !p.ended {
			p.failed = true
			r.end(p, 0)
		}
	}
}

// end counts a package and prints it.
func (r *report) end(p *pkg, seconds float64) {
	p.ended = true
	for _, t := range p.tests {
		if t.outcome == "" {
			t.outcome = "fail" // it was running when its package died
		}
	}
	c := p.count()
	r.total.add(c)
	switch {
	case p.failed || c.failed > 0:
		r.printf("FAIL  %-34s %7.1fs  %s\n", p.path, seconds, c)
		r.failures(p)
	case len(p.tests) > 0:
		r.printf("ok    %-34s %7.1fs  %s\n", p.path, seconds, c)
	}
	for _, t := range p.tests {
		if t.outcome == "skip" {
			r.printf("SKIP  %s.%s\n", p.path, t.name)
			r.lines(t.output)
		}
	}
}

// failures prints what a failed package said: its failed tests, and its own
// output, where panics stand.
func (r *report) failures(p *pkg) {
	if r.show {
		return // it was printed as it came
	}
	for _, t := range p.tests {
		if t.outcome == "fail" {
			r.lines(t.output)
		}
	}
	r.lines(p.output)
}

func (r *report) lines(output []string) {
	if cut := len(output) - longest; cut > 0 {
		r.lines(output[:longest/2])
		r.printf("      … %d lines left out …\n", cut)
		output = output[len(output)-longest/2:]
	}
	for _, line := range output {
		r.printf("      %s\n", strings.TrimRight(line, "\n"))
	}
}

// ran says whether a test whose name matches was run and not skipped.
func (r *report) ran(re *regexp.Regexp) bool {
	for _, p := range r.pkgs {
		for _, t := range p.tests {
			if t.outcome != "skip" && re.MatchString(p.path+"."+t.name) {
				return true
			}
		}
	}
	return false
}

// counts are numbers of tests. A test with subtests counts as its subtests,
// unless it failed although none of them did; a package that failed although
// none of its tests did counts as one failure.
type counts struct{ passed, failed, skipped int }

func (p *pkg) count() counts {
	parents := map[*test]bool{} // with subtests; true if one of them failed
	for _, t := range p.tests {
		for name := t.name; ; {
			i := strings.LastIndexByte(name, '/')
			if i < 0 {
				break
			}
			name = name[:i]
			if parent := p.byName[name]; parent != nil {
				parents[parent] = parents[parent] || t.outcome == "fail"
			}
		}
	}
	var c counts
	for _, t := range p.tests {
		subFailed, isParent := parents[t]
		switch {
		case t.outcome == "skip":
			c.skipped++
		case t.outcome == "fail" && !subFailed:
			c.failed++
		case t.outcome == "pass" && !isParent:
			c.passed++
		}
	}
	if p.failed && c.failed == 0 {
		c.failed++
	}
	return c
}

func (c *counts) add(d counts) {
	c.passed += d.passed
	c.failed += d.failed
	c.skipped += d.skipped
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// complaints are the reasons why these counts are no success.
func (c counts) complaints() []string {
	var s []string
	if c.skipped > 0 {
		s = append(s, "a skipped test proves nothing: make it run, or delete it")
	}
	if c.passed+c.failed == 0 {
		s = append(s, "no test ran")
	}
	if c.failed > 0 {
		s = append(s, "tests failed")
	}
	return s
}

// append adds a line to a tally, for who sums up several runs.
func (c counts) append(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%d %d %d\n", c.passed, c.failed, c.skipped)
	return errors.Join(err, f.Close())
}
