package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"holdfast/handlers"
	"holdfast/store"
)

type verifyCmd struct {
	Session string `arg:"" optional:"" help:"Only this session."`
}

// Run checks a journal, read-only, and prints a table; it fails if anything is off.
func (v *verifyCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		report, err := st.Verify(ctx, store.VerifyOptions{Session: v.Session})
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
		fmt.Fprintf(w, "CHECK\tCHECKED\tFAULTS\n")
		for _, check := range report.Checks {
			fmt.Fprintf(w, "%s\t%d\t%d\n", check.Name, check.Checked, check.Found)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		for _, check := range report.Checks {
			for _, fault := range check.Faults {
				fmt.Fprintf(s.out, "%s: %s\n", check.Name, fault)
			}
		}
		fmt.Fprintf(s.out, "%d sessions, %d events: ", report.Sessions, report.Events)
		if !report.OK() {
			fmt.Fprintln(s.out, "the journal is damaged")
			return errSaid
		}
		fmt.Fprintln(s.out, "the journal is whole")
		return nil
	})
}

type exportCmd struct {
	Session string `arg:"" help:"The session's id."`
	Format  string `help:"How to write it." enum:"json" default:"json"`
}

// Run writes a whole session to standard output.
func (e *exportCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		owner, err := st.OwnerOf(ctx, e.Session)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(s.out)
		return errors.Join(handlers.ExportJSON(ctx, w, st, owner, e.Session), w.Flush())
	})
}
