// Command gotest runs `go test -json` and reports it compactly:
//
//	go run ./scripts/gotest -- -race ./store/...
//
// It prints a line a package, the whole output of what failed, and closes with
// the counts. Beyond what go test itself calls a failure, a run fails when a
// test was skipped (a skipped test proves nothing, and nobody notices), when no
// test ran at all, and when no test matched a -want.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the command line: what to demand of the run, and go test's own
// arguments after `--`.
type options struct {
	want  []*regexp.Regexp
	tally string
	show  bool
	dir   string
	args  []string
}

func parse(argv []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("gotest", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("want", "fail unless a test's `pattern` was run; case is ignored, may be repeated", func(s string) error {
		re, err := regexp.Compile("(?i)" + s)
		o.want = append(o.want, re)
		return err
	})
	flags.StringVar(&o.tally, "tally", "", "append the counts to this `file`")
	flags.BoolVar(&o.show, "show", false, "print the output of passing tests too, as it comes")
	flags.StringVar(&o.dir, "C", "", "run in this `folder`")
	err := flags.Parse(argv)
	o.args = flags.Args()
	return o, err
}

// run runs go test once and returns the exit code: 0 all passed, 1 not so, 2
// wrong use.
func run(ctx context.Context, argv []string, stdout, stderr io.Writer) int {
	o, err := parse(argv, stderr)
	if err != nil {
		return 2
	}
	started := time.Now()
	r := newReport(stdout, o.show)
	testErr := goTest(ctx, o, r, stderr)
	r.finish()

	c := r.total
	complaints := c.complaints()
	for _, re := range o.want {
		if !r.ran(re) {
			complaints = append(complaints, fmt.Sprintf("no test ran that matches %s", re))
		}
	}
	if testErr != nil {
		complaints = append(complaints, "go test: "+testErr.Error())
	}
	if o.tally != "" {
		if err := c.append(o.tally); err != nil {
			complaints = append(complaints, err.Error())
		}
	}
	for _, s := range complaints {
		r.printf("gotest: %s\n", s)
	}
	r.printf("%s in %s\n", c, time.Since(started).Round(100*time.Millisecond))
	if len(complaints) > 0 {
		return 1
	}
	return 0
}

// goTest feeds the report with the events of one `go test -json`.
func goTest(ctx context.Context, o options, r *report, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, o.args...)...)
	cmd.Dir = o.dir
	cmd.Stderr = stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := r.read(out)
	if err := cmd.Wait(); err != nil {
		return err
	}
	return readErr
}
