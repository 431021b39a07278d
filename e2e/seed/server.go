package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast/e2e/power"
)

// patience bounds each wait; only a filling that fails meets it.
const patience = 2 * time.Minute

// run runs the product to its end and gives what it printed.
func (f *filling) run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, f.o.Binary, append(args, "--state", f.r.State, "--database", f.r.Database)...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = f.o.Dir, strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("holdfast %s: %w\n%s", strings.Join(args[:2], " "), err, errs.String())
	}
	return out.String(), nil
}

// serving runs fn beside a server, and kills that with -9 afterwards, with all
// that it runs, as if the power was cut.
func (f *filling) serving(ctx context.Context, name string, flags []string, fn func(context.Context) error) (err error) {
	path := filepath.Join(f.o.Dir, name+".log")
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	args := append(f.r.Serve(), "--addr", "127.0.0.1:0", "--rate", "1000", "--burst", "1000")
	cmd := exec.CommandContext(ctx, f.o.Binary, append(args, flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = f.o.Dir, out, out, time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Kill() // it may have ended by itself; then fn has failed
		_ = cmd.Wait()         // killed is what it was to be
		err = errors.Join(err, power.Cut(f.r.State))
	}()
	f.c.token = f.r.Token
	err = until(ctx, "the server listens", func() (bool, error) {
		text, err := os.ReadFile(path)
		_, rest, found := strings.Cut(string(text), "listening on ")
		base, _, whole := strings.Cut(rest, "\n")
		f.c.base = base
		return found && whole, err
	})
	if err == nil {
		err = fn(ctx)
	}
	if err != nil {
		text, rerr := os.ReadFile(path)
		return errors.Join(fmt.Errorf("%w; the server says:\n%s", err, text), rerr)
	}
	return nil
}

// until looks until something is so.
func until(ctx context.Context, what string, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(30 * time.Millisecond)
	defer look.Stop()
	for {
		switch done, err := ok(); {
		case err != nil:
			return fmt.Errorf("wait until %s: %w", what, err)
		case done:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain until %s: %w", what, ctx.Err())
		case <-look.C:
		}
	}
}
