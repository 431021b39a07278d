package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/shell"

	"holdfast/handlers"
	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/runner/runbook"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/vault"
)

// knownAgents are the programs that speak ACP and are offered if they are on PATH.
var knownAgents = []struct {
	name    string
	command []string
	get     string // how to get it
}{
	{"opencode", []string{"opencode", "acp"}, "npm install --global opencode-ai"},
	{"claude", []string{"claude-agent-acp"}, "npm install --global @agentclientprotocol/claude-agent-acp"},
	{"claude-code", []string{"claude-code-acp"}, "npm install --global @zed-industries/claude-code-acp"},
	{"codex", []string{"codex-acp"}, "npm install --global @zed-industries/codex-acp"},
	{"gemini", []string{"gemini", "--acp"}, "npm install --global @google/gemini-cli"},
}

// offeredAgent is one that speaks ACP, and where it was found.
type offeredAgent struct {
	*acp.Agent
	from string // --agent or PATH
}

// agentFlags say which agents there are besides the runbook.
type agentFlags struct {
	Agents   []string `help:"An agent that speaks ACP, as NAME=PROGRAM ARGUMENTS; several with several flags. Known ones on PATH are offered by themselves." env:"HOLDFAST_AGENT" name:"agent" sep:";" placeholder:"NAME=COMMAND"`
	AgentEnv []string `help:"Environment variables that agents get, such as a model's key." env:"HOLDFAST_AGENT_ENV" name:"agent-env" placeholder:"NAME"`
}

// agentName is what a session may name an agent by.
var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)

// agents are those that are named with --agent, and those found on PATH.
func (c *agentFlags) agents(environ []string) ([]offeredAgent, error) {
	if err := checkAgentEnv(c.AgentEnv); err != nil {
		return nil, err
	}
	var out []offeredAgent
	taken := []string{runbook.Name}
	add := func(name, from string, command []string) {
		taken = append(taken, name)
		out = append(out, offeredAgent{acp.New(acp.Options{Name: name, Command: command, Env: agentEnv(environ, c.AgentEnv), Version: buildVersion()}), from})
	}
	for _, spec := range c.Agents {
		name, line, _ := strings.Cut(spec, "=")
		command, err := shell.Fields(line, func(string) string { return "" })
		switch {
		case err != nil || len(command) == 0 || !agentName.MatchString(name):
			return nil, usageError{fmt.Sprintf("--agent %q: say NAME=PROGRAM ARGUMENTS, the name in small letters, digits, dots and dashes", spec)}
		case slices.Contains(taken, name):
			return nil, usageError{fmt.Sprintf("--agent %s: there is one of that name already", name)}
		}
		add(name, "--agent", command)
	}
	for _, k := range knownAgents {
		if _, err := exec.LookPath(k.command[0]); err == nil && !slices.Contains(taken, k.name) {
			add(k.name, "PATH", k.command)
		}
	}
	return out, nil
}

// envName is the name of a variable of an environment.
var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkAgentEnv refuses what isn't the name of a variable. What is given in its place
// may be a secret: it isn't told.
func checkAgentEnv(names []string) error {
	for i, spec := range names {
		name, _, valued := strings.Cut(spec, "=")
		switch {
		case name == vault.KeyVariable:
			return usageError{"--agent-env " + vault.KeyVariable + ": agents can't have the key that credentials are sealed with"}
		case envName.MatchString(spec):
		case valued && envName.MatchString(name):
			return usageError{"--agent-env " + name + "=…: name the variable only; agents get the value that it has in the server's environment"}
		default:
			return usageError{fmt.Sprintf("--agent-env: the one at place %d is not the name of a variable: letters, digits and _ only, several with commas between them", i+1)}
		}
	}
	return nil
}

// agentEnv is what an agent gets of the environment: what commands get, and the
// variables that are named.
func agentEnv(environ, names []string) []string {
	out := tool.BaseEnv(environ)
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// checkAgent starts an agent, asks what it is and can, tries that, and ends it. No
// model is asked. extra is environment that it gets besides its own.
func checkAgent(ctx context.Context, a *acp.Agent, extra ...string) ([]store.Finding, acp.Probe, error) {
	dir, err := os.MkdirTemp("", "holdfast-doctor-*")
	if err != nil {
		return nil, acp.Probe{}, fmt.Errorf("make a folder for the agent: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := a.Probe(ctx, dir, extra...)
	var out []store.Finding
	for _, f := range a.Findings(p, err, extra...) {
		out = append(out, store.Finding{Check: f.Subject, Health: store.Health(f.Health), Found: f.Found, Do: f.Do})
	}
	return out, p, nil
}

// checkPrograms looks whether the programs of the agents are there. It starts none.
func checkPrograms(agents []offeredAgent) []store.Finding {
	var out []store.Finding
	for _, a := range agents {
		f := store.Finding{Check: "agent " + a.Name(), Health: store.Healthy}
		file, err := a.Program()
		if f.Found = file; a.InWorkspace() {
			f.Health, f.Found, f.Do = store.Warning, acp.FoundInWorkspace(file), acp.DoInWorkspace
		} else if errors.Is(err, fs.ErrPermission) {
			f.Health, f.Found, f.Do = store.Warning, err.Error(), acp.DoExecutable+", or drop its --agent: sessions with it wait until it can be started"
		} else if err != nil {
			f.Health, f.Found, f.Do = store.Warning, err.Error(), "put it back, or drop its --agent: sessions with it wait until it can be started"
		}
		out = append(out, f)
	}
	return out
}

// agentPrograms are the agents of this server as they are just now, for its settings:
// those that it offers, and those that it knows and would offer.
func (sv *server) agentPrograms() []handlers.AgentProgram {
	out := []handlers.AgentProgram{{Name: runbook.Name, From: handlers.BuiltIn}}
	taken := []string{runbook.Name}
	for _, a := range sv.offered {
		one := handlers.AgentProgram{Name: a.Name(), Command: a.CommandLine(), From: a.from}
		file, err := a.Program()
		if one.File = file; err != nil {
			one.Reason = err.Error()
		}
		out, taken = append(out, one), append(taken, one.Name)
	}
	for _, k := range knownAgents {
		if slices.Contains(taken, k.name) {
			continue
		}
		one := handlers.AgentProgram{Name: k.name, Command: strings.Join(k.command, " "), Reason: "its program " + k.command[0] + " was not found on PATH when this server was started", Get: k.get}
		if _, err := exec.LookPath(k.command[0]); err == nil {
			one.Reason = "its program " + k.command[0] + " is on PATH by now: start the server again to offer it"
		}
		out = append(out, one)
	}
	return out
}

// lookAt starts an agent of this server for one of its owners, and says what was found.
func (sv *server) lookAt(ctx context.Context, name, ownerID string) ([]store.Finding, error) {
	i := slices.IndexFunc(sv.offered, func(a offeredAgent) bool { return a.Name() == name })
	if i < 0 {
		return nil, fmt.Errorf("this server has no agent %q", name)
	}
	given, err := sv.vault.ForOwner(ctx, ownerID, name)
	if err != nil {
		return nil, err
	}
	found, p, err := checkAgent(ctx, sv.offered[i].Agent, given.Env...)
	if p.SessionID != "" {
		sv.keepOffers(ctx, name, ownerID, p)
	}
	clean := journal.NewCleaner(slices.Concat(sv.secrets, given.Secrets))
	for i := range found {
		found[i].Found, found[i].Do = clean.Text(found[i].Found), clean.Text(found[i].Do)
	}
	return found, err
}

// keepOffers keeps what an agent offered when it was looked at, so that a new session can
// be set from the start. What was found stands without it, too.
func (sv *server) keepOffers(ctx context.Context, name, ownerID string, p acp.Probe) {
	version := ""
	if i := p.Init.AgentInfo; i != nil {
		version = strings.TrimSpace(i.Name + " " + i.Version)
	}
	if err := sv.store.SaveAgentOffers(ctx, ownerID, name, version, p.Offers()); err != nil {
		sv.log.Warn("keep what an agent offers", slog.String("agent", name), slog.Any("error", err))
	}
}
