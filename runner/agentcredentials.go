package runner

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/vault"
)

// What an agent's process gets of its owner's credentials, and what is masked of them.

// masks are what of some secrets is masked in the bytes that the process writes, in
// which text can't be told from what is not: only what makes no other line of a good
// one. The others are masked where the line is read.
func (s ProcessSpec) masks(secrets []string) []string {
	if s.Shape == nil {
		return secrets
	}
	var out []string
	for _, secret := range secrets {
		for _, form := range journal.Forms(secret) {
			if !mayBeJSON(form) && !s.Shape.Holds(form) && !slices.Contains(out, form) {
				out = append(out, form)
			}
		}
	}
	return out
}

// mayBeJSON reports whether something of a line of JSON may spell a value that is no
// part of a text in it, such as a number, or the end of a text and the next one's start.
func mayBeJSON(value string) bool {
	if strings.Trim(value, "{}[]:,+-.0123456789eEtrufalsn ") == "" {
		return true
	}
	const opens, closes = "{[,: ", ":,}] "
	quotes := 0
	for i := range len(value) {
		if value[i] != '"' {
			continue
		}
		quotes++
		before, behind := i == 0 || strings.IndexByte(opens, value[i-1]) >= 0, i == len(value)-1 || strings.IndexByte(closes, value[i+1]) >= 0
		if !before && !behind { // no text begins or ends so
			return false
		}
	}
	return quotes > 0
}

// reasonUnmasked is why a process is ended that says what nobody can hide any more.
const reasonUnmasked = "its credentials were forgotten or spoilt, so what it says can't be masked any more"

// mute ends a process that has credentials which this server can't mask, before anything
// that it says is read (OWN-3): it may spell them in ways that its shim doesn't know.
func (t *Turn) mute(ctx context.Context, was *journal.AgentProcess, found *shim.Found) (muted bool, err error) {
	if len(was.Credentials) == 0 {
		return false, nil
	}
	if k := t.r.o.Credentials; k != nil {
		masked := false
		err := t.persist(ctx, func() (err error) {
			masked, err = k.Opens(context.WithoutCancel(ctx), was.Credentials)
			return err
		})
		if masked || err != nil {
			return false, err
		}
	}
	id := processName(was.ID)
	t.r.log.Warn("an agent's process has credentials that can't be masked any more; what it said since it was last followed is left out", slog.String("session", t.run.session), slog.String("process", was.ID))
	for found.Running {
		t.r.endStray(ctx, id, reasonUnmasked)
		if *found, err = t.r.o.Shims.Find(id); err != nil {
			return false, err
		}
		if found.Running { // somebody has stopped its shim
			gone, err := t.r.killAgent(ctx, t.run.session, was.ID)
			if gone {
				return true, nil
			}
			t.r.log.Warn("end an agent whose shim doesn't answer", slog.String("session", t.run.session), slog.String("process", was.ID), slog.Any("error", err))
			select {
			case <-ctx.Done():
				return false, context.Cause(ctx)
			case <-time.After(retryEvery):
			}
		}
	}
	return true, nil
}

// credentials are what the session's agent gets in its environment, and what is masked
// in all that a process of it says. They are masked in the journal from here on.
func (t *Turn) credentials(ctx context.Context) (vault.Given, error) {
	if t.r.o.Credentials == nil {
		return vault.Given{}, nil
	}
	given, err := t.r.o.Credentials.ForSession(context.WithoutCancel(ctx), t.run.session, t.fold.State.Agent)
	if err != nil {
		return given, fmt.Errorf("its credentials can't be given to it: %w", err)
	}
	return given, nil
}

// masks are the values that are masked in the output of a command: the server's, and
// the credentials of the session's owner, which it isn't given but may find.
func (t *Turn) masks() []string {
	o := &t.r.o
	if o.Credentials == nil {
		return o.Secrets
	}
	values, err := o.Credentials.Secrets(context.WithoutCancel(t.run.ctx), t.run.session)
	if err != nil { // the journal masks them all the same, piece by piece
		t.r.log.Warn("look for what is to be masked in a command's output", slog.String("session", t.run.session), slog.Any("error", err))
	}
	return slices.Concat(o.Secrets, values)
}

// Outdated reports whether the process that the journal knows of was started with other
// credentials than it would get now.
func (t *Turn) Outdated(ctx context.Context) (bool, error) {
	p := t.fold.State.Process
	if p == nil {
		return false, nil
	}
	given, err := t.credentials(ctx)
	return err == nil && !slices.Equal(p.Credentials, given.IDs), err
}

// noteUse lets the list of credentials tell that they were used: for the eye only.
func (t *Turn) noteUse(ctx context.Context, given vault.Given) {
	if len(given.IDs) == 0 {
		return
	}
	if err := t.r.o.Credentials.Started(context.WithoutCancel(ctx), given); err != nil {
		t.r.log.Warn("note that credentials were used", slog.String("session", t.run.session), slog.Any("error", err))
	}
}
