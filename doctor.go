package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/runner/runbook"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/vault"
	"holdfast/views/components"
)

type doctorCmd struct {
	agentFlags `embed:""`

	Addr       string   `help:"Where the server listens." default:"127.0.0.1:8080" env:"HOLDFAST_ADDR"`
	PublicURL  string   `help:"The address that browsers see, behind a proxy." env:"HOLDFAST_PUBLIC_URL" name:"public-url" placeholder:"URL"`
	Workspaces []string `help:"Folders under which workspaces may lie (default: the current folder)." env:"HOLDFAST_WORKSPACES" placeholder:"DIR"`

	All   doctorAllCmd   `cmd:"" default:"1" help:"Check everything (the default)."`
	Agent doctorAgentCmd `cmd:"" help:"Check one agent."`
}

type doctorAllCmd struct{}

// Run checks everything that a server rests on, beside one that runs: it writes
// nothing, and is in nobody's way.
func (*doctorAllCmd) Run(ctx context.Context, g *common, c *doctorCmd, s streams) error {
	dir, err := g.stateDir()
	if err != nil {
		return err
	}
	database, err := g.databaseURL()
	if err != nil {
		return err
	}
	agents, err := c.agents(os.Environ())
	if err != nil {
		return err
	}
	d := store.Diagnose(ctx, database, dir, func(call *journal.Call) (store.ShimSeen, error) { return seeShim(shimsIn(dir), call) })
	found := append(d.Findings, c.signIn(d)...)
	found = append(found, c.spaces(d)...)
	keys, err := g.credentials(d)
	if err != nil {
		return err
	}
	found = append(found, keys...)
	found = append(found, checkRunbook()...)
	found = append(found, checkPrograms(agents)...)
	for _, note := range tool.Degraded() {
		found = append(found, store.Finding{Check: "platform", Health: store.Warning, Found: note})
	}
	return showFindings(s, found)
}

// seeShim looks at the shim of a call in a folder of shims.
func seeShim(folder string, call *journal.Call) (store.ShimSeen, error) {
	found, err := shim.Look(folder, shim.ID{CallID: call.ID, N: call.N})
	seen := store.ShimSeen{Lives: found.Running, Recorded: found.Exit != nil}
	if seen.Lives && call.Process != nil {
		seen.PID = tool.Process(*call.Process).Parent()
	}
	return seen, err
}

// shownFinding bounds a text of a finding, in bytes.
const shownFinding = 1000

// showFindings prints what was found, each under its state, and fails if something is wrong.
func showFindings(s streams, found []store.Finding) error {
	count := map[store.Health]int{}
	for _, f := range found {
		count[f.Health]++
		// Paths and errors may hold anything; a terminal must not obey it.
		s.item(string(f.Health), f.Check+": "+components.Plain(components.Line(f.Found, shownFinding)))
		if f.Do != "" {
			s.item("", "To do: "+components.Plain(components.Line(f.Do, shownFinding)))
		}
	}
	s.say("%s: %d ok, %d with a warning, %d wrong\n", components.Plural(len(found), "check"), count[store.Healthy], count[store.Warning], count[store.Wrong])
	if count[store.Wrong] > 0 {
		return errSaid
	}
	return nil
}

// signIn checks that somebody can sign in, and that their password is safe on its way.
func (c *doctorCmd) signIn(d *store.Diagnosis) []store.Finding {
	out := []store.Finding{c.address()}
	if !d.Read {
		return out
	}
	users := store.Finding{Check: "sign-in", Health: store.Healthy, Found: components.Plural(d.Users, "user")}
	if d.Disabled > 0 {
		users.Found += fmt.Sprintf(", %d disabled", d.Disabled)
	}
	switch {
	case d.Users == 0 && d.SetupLinks > 0:
		users.Health, users.Do = store.Warning, "open the link that the server printed when it started, or run holdfast user add EMAIL"
		users.Found += "; a setup link waits"
	case d.Users == 0:
		users.Health, users.Do = store.Warning, "start the server and open the link that it prints, or run holdfast user add EMAIL"
	case d.Users == d.Disabled:
		users.Health, users.Do = store.Warning, "run holdfast user add EMAIL: nobody can sign in"
	}
	return append(out, users)
}

// credentials checks that the key fits what is stored.
func (c *common) credentials(d *store.Diagnosis) ([]store.Finding, error) {
	source, err := c.keySource()
	if err != nil || !d.Read {
		return nil, err
	}
	f := store.Finding{Check: "credentials", Health: store.Healthy}
	fit, err := vault.Fits(source, d.KeyID, d.Sealed)
	switch {
	case err != nil:
		f.Health, f.Found = store.Wrong, err.Error()
		f.Do = "bring the key of the server that stored them, by --key-file or " + vault.KeyVariable + "; if it is gone: holdfast credential forget"
	case d.KeyID == "" && fit.KeyID == "":
		f.Found = "none was ever stored; the first makes the key, in " + source.File
	case d.KeyID == "":
		f.Found = "none is stored; the key " + fit.KeyID + " is ready, in " + source.Where()
	case len(fit.Spoilt) > 0:
		f.Health, f.Found = store.Wrong, "these don't open, although the key is the right one: "+strings.Join(fit.Spoilt, ", ")
		f.Do = "have their owners store them again: their rows were changed or damaged"
	default:
		f.Found = fmt.Sprintf("%s open with the key %s, in %s", components.Plural(len(d.Sealed), "stored value"), fit.KeyID, source.Where())
	}
	return []store.Finding{f}, nil
}

// address checks how browsers reach the server.
func (c *doctorCmd) address() store.Finding {
	f := store.Finding{Check: "address", Health: store.Healthy, Found: c.Addr}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return store.Finding{Check: "address", Health: store.Wrong, Found: "--addr " + err.Error(), Do: "give it as HOST:PORT"}
	}
	if c.PublicURL == "" {
		f.Found += ", without --public-url"
		if !loopback(host) {
			f.Health, f.Do = store.Warning, "others can reach it without TLS: listen on 127.0.0.1, put a proxy with TLS in front, and name its address with --public-url"
		}
		return f
	}
	f.Found += ", as " + c.PublicURL
	u, err := url.Parse(c.PublicURL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		f.Health, f.Do = store.Wrong, "--public-url must be such as https://holdfast.example"
	case u.Scheme == "http" && !loopback(u.Hostname()):
		f.Health, f.Do = store.Warning, "without https passwords and cookies can be read on their way"
	}
	return f
}

// spaces checks the folders for workspaces, and those that sessions work in.
func (c *doctorCmd) spaces(d *store.Diagnosis) []store.Finding {
	roots := c.Workspaces
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var out []store.Finding
	for _, root := range roots {
		one, err := runner.NewWorkspaces([]string{root})
		switch {
		case err != nil:
			out = append(out, store.Finding{Check: "workspaces", Health: store.Wrong, Found: err.Error(), Do: "make it, or name others with --workspaces"})
		case unix.Access(one.Roots()[0], unix.W_OK|unix.X_OK) != nil:
			out = append(out, store.Finding{Check: "workspaces", Health: store.Warning, Found: one.Roots()[0] + " can't be written", Do: "give it to the user that the server runs as, unless missions only read"})
		default:
			out = append(out, store.Finding{Check: "workspaces", Health: store.Healthy, Found: one.Roots()[0]})
		}
	}
	all, err := runner.NewWorkspaces(roots)
	if err != nil || len(d.Workspaces) == 0 {
		return out
	}
	const most = 5
	lost := 0
	for _, b := range d.Workspaces {
		if err := all.Check(b); err != nil {
			if lost++; lost <= most {
				out = append(out, store.Finding{
					Check: "sessions' folder", Health: store.Warning, Found: strings.TrimSuffix(plain(err).Error(), " Nothing was recorded."),
					Do: "its sessions are blocked until it is back, or a server with other --workspaces runs them",
				})
			}
		}
	}
	return append(out, store.Finding{Check: "sessions' folders", Health: store.Healthy, Found: fmt.Sprintf("%d of %d are as they were when their sessions were made", len(d.Workspaces)-lost, len(d.Workspaces))})
}

// checkRunbook looks for the shells that the runbook agent runs steps with.
func checkRunbook() []store.Finding {
	var out []store.Finding
	for _, shell := range []struct {
		name   string
		health store.Health
		do     string
	}{
		{"sh", store.Wrong, "install it, or put it into PATH: no step can run"},
		{"bash", store.Warning, "install it, or put it into PATH: steps marked bash fail"},
	} {
		f := store.Finding{Check: "agent " + runbook.Name, Health: store.Healthy}
		path, err := exec.LookPath(shell.name)
		if f.Found = shell.name + ": " + path; err != nil {
			f.Health, f.Do, f.Found = shell.health, shell.do, shell.name+" isn't in PATH ("+os.Getenv("PATH")+")"
			if !errors.Is(err, exec.ErrNotFound) {
				f.Found = err.Error()
			}
		}
		out = append(out, f)
	}
	return out
}

// credentials are what the user named has stored for the agent.
func (a *doctorAgentCmd) credentials(ctx context.Context, g *common, s streams) (env []string, err error) {
	if a.User == "" {
		return nil, nil
	}
	source, err := g.keySource()
	if err != nil {
		return nil, err
	}
	return env, with(ctx, g, s, func(st *store.Store) error {
		user, err := st.UserByEmail(ctx, strings.ToLower(a.User))
		if err != nil {
			return g.notFound(err, "user "+a.User, listUsers)
		}
		k, err := vault.Open(ctx, st, source)
		if err != nil {
			return err
		}
		given, err := k.ForOwner(ctx, user.ID, a.Name)
		env = given.Env
		return err
	})
}

type doctorAgentCmd struct {
	Name string `arg:"" help:"The agent's name, as the server prints it at its start."`
	User string `help:"Give it the credentials that this user has stored, too." placeholder:"EMAIL"`
}

// Run checks one agent. Others than the runbook are started, and asked no model call.
func (a *doctorAgentCmd) Run(ctx context.Context, g *common, c *doctorCmd, s streams) error {
	if a.Name == runbook.Name {
		return showFindings(s, checkRunbook())
	}
	agents, err := c.agents(os.Environ())
	if err != nil {
		return err
	}
	names := []string{runbook.Name}
	for _, one := range agents {
		if one.Name() == a.Name {
			extra, err := a.credentials(ctx, g, s)
			if err != nil {
				return err
			}
			return a.check(ctx, one.Agent, extra, s)
		}
		names = append(names, one.Name())
	}
	return usageError{fmt.Sprintf("there is no agent %q; there are %s. Name others with --agent, or put them on PATH", a.Name, strings.Join(names, ", "))}
}

// check looks at an agent that is started. A signal ends the look, and all that was
// started for it.
func (a *doctorAgentCmd) check(ctx context.Context, one *acp.Agent, extra []string, s streams) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	found, _, err := checkAgent(ctx, one, extra...)
	if err != nil {
		return err
	}
	for i := range found {
		found[i].Check = "agent " + one.Name() + ", " + found[i].Check
	}
	return showFindings(s, found)
}
