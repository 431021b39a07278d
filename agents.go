package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/shell"

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
}{
	{"opencode", []string{"opencode", "acp"}},
	{"claude", []string{"claude-agent-acp"}},
	{"claude-code", []string{"claude-code-acp"}},
	{"codex", []string{"codex-acp"}},
	{"gemini", []string{"gemini", "--acp"}},
}

// agentFlags say which agents there are besides the runbook.
type agentFlags struct {
	Agents   []string `help:"An agent that speaks ACP, as NAME=PROGRAM ARGUMENTS; several with several flags. Known ones on PATH are offered by themselves." env:"HOLDFAST_AGENT" name:"agent" sep:";" placeholder:"NAME=COMMAND"`
	AgentEnv []string `help:"Environment variables that agents get, such as a model's key." env:"HOLDFAST_AGENT_ENV" name:"agent-env" placeholder:"NAME"`
}

// agentName is what a session may name an agent by.
var agentName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)

// agents are those that are named with --agent, and those found on PATH.
func (c *agentFlags) agents(environ []string) ([]*acp.Agent, error) {
	if slices.Contains(c.AgentEnv, vault.KeyVariable) {
		return nil, usageError{"--agent-env " + vault.KeyVariable + ": agents can't have the key that credentials are sealed with"}
	}
	var out []*acp.Agent
	taken := []string{runbook.Name}
	add := func(name string, command []string) {
		taken = append(taken, name)
		out = append(out, acp.New(acp.Options{Name: name, Command: command, Env: agentEnv(environ, c.AgentEnv), Version: buildVersion()}))
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
		add(name, command)
	}
	for _, k := range knownAgents {
		if _, err := exec.LookPath(k.command[0]); err == nil && !slices.Contains(taken, k.name) {
			add(k.name, k.command)
		}
	}
	return out, nil
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

// checkAgent starts an agent with variables besides its own, asks what it is and can,
// and ends it.
func checkAgent(ctx context.Context, a *acp.Agent, extra []string) ([]store.Finding, error) {
	dir, err := os.MkdirTemp("", "holdfast-doctor-*")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the agent: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := a.Probe(ctx, dir, extra...)
	name := "agent " + a.Name()
	if err != nil {
		return []store.Finding{{Check: name, Health: store.Wrong, Found: err.Error(), Do: "try its command by hand: " + strings.Join(a.Command(), " ")}}, nil
	}
	return []store.Finding{
		{Check: name, Health: store.Healthy, Found: whoIs(p)}, canOpen(name, p), canGoOn(name, p), canLeave(name, p),
	}, nil
}

func whoIs(p acp.Probe) string {
	who := "it doesn't say who it is"
	if i := p.Init.AgentInfo; i != nil {
		who = strings.TrimSpace(i.Name + " " + i.Version)
	}
	return fmt.Sprintf("%s, ACP %d, begun in %s", who, p.Init.ProtocolVersion, p.InitTook.Round(time.Millisecond))
}

func canOpen(name string, p acp.Probe) store.Finding {
	f := store.Finding{Check: name, Health: store.Healthy, Found: "opens a session in " + p.OpenTook.Round(time.Millisecond).String() + "; no model was asked"}
	if p.Refused == nil {
		return f
	}
	f.Health, f.Found, f.Do = store.Wrong, "opens no session: "+p.Refused.Error(), "see what it needs by its own command line"
	for _, m := range p.Init.AuthMethods {
		f.Do = "sign in by its own command line; it offers: " + strings.TrimSpace(m.Name+". "+m.Description)
		break
	}
	return f
}

func canGoOn(name string, p acp.Probe) store.Finding {
	f := store.Finding{Check: name, Health: store.Healthy}
	switch caps := p.Init.AgentCapabilities; {
	case bool(caps.SessionCapabilities.Resume):
		f.Found = "goes on with a conversation in another process"
	case caps.LoadSession:
		f.Found = "goes on with a conversation in another process, after it has told all of it again"
	default:
		f.Health, f.Found, f.Do = store.Warning, "can't go on with a conversation once its process has ended", "raise --agent-idle, so that it ends later"
	}
	return f
}

func canLeave(name string, p acp.Probe) store.Finding {
	if p.Leaves {
		return store.Finding{Check: name, Health: store.Healthy, Found: "ends by itself when it is told nothing more, in " + p.LeftIn.Round(time.Millisecond).String()}
	}
	return store.Finding{Check: name, Health: store.Healthy, Found: "doesn't end by itself when it is told nothing more: it is ended"}
}
