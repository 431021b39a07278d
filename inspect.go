package main

import (
	"bufio"
	"context"
	"errors"
	"strconv"

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
			return c.notFound(err, "session "+v.Session, findID)
		}
		w := s.table("CHECK", "CHECKED", "FAULTS")
		for _, check := range report.Checks {
			w.row(check.Name, strconv.Itoa(check.Checked), strconv.Itoa(check.Found))
		}
		if err := w.flush(); err != nil {
			return err
		}
		for _, check := range report.Checks {
			for _, fault := range check.Faults {
				s.say("%s: %s\n", check.Name, legible(fault))
			}
		}
		s.say("%d sessions, %d events: ", report.Sessions, report.Events)
		if !report.OK() {
			s.say("the journal is damaged\n")
			return errSaid
		}
		s.say("the journal is whole\n")
		return nil
	})
}

type exportCmd struct {
	Session string `arg:"" help:"The session's id."`
	Format  string `help:"How to write it: json, or md for Markdown." enum:"json,md" default:"json"`
}

// Run writes a whole session to standard output.
func (e *exportCmd) Run(ctx context.Context, c *common, s streams) error {
	return with(ctx, c, s, func(st *store.Store) error {
		owner, err := st.OwnerOf(ctx, e.Session)
		if err != nil {
			return c.notFound(err, "session "+e.Session, findID)
		}
		export := handlers.ExportJSON
		if e.Format == "md" {
			export = handlers.ExportMarkdown
		}
		w := bufio.NewWriter(s.out)
		return errors.Join(export(ctx, w, st, owner, e.Session), w.Flush())
	})
}
