// Package agents has agents as people have them, from npm, for tests. They are at
// exact versions (package.json, package-lock.json); scripts/npm -C e2e/agents
// installs them. They work offline: their model is e2e/model.
package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Agent is one of them.
type Agent struct {
	Name    string // by which the product offers it
	Program string // on PATH
	Version string
	// API is how it can speak with its model, the way that it takes for itself first.
	API []string

	pkg   string
	shows []string // that its program runs here
}

// Claude is Claude Code behind its adapter.
var Claude = Agent{
	Name: "claude", Program: "claude-agent-acp", Version: "0.49.0", API: []string{"anthropic"},
	pkg: "@agentclientprotocol/claude-agent-acp", shows: []string{"--cli", "--version"},
}

// OpenCode speaks ACP itself.
var OpenCode = Agent{
	Name: "opencode", Program: "opencode", Version: "1.18.33", API: []string{"openai", "anthropic"},
	pkg: "opencode-ai", shows: []string{"--version"},
}

// Bin is where their programs are; folder is this package's.
func Bin(folder string) (string, error) {
	return filepath.Abs(filepath.Join(folder, "node_modules", ".bin"))
}

// Check says what is wrong with what is installed of the agent; nil: nothing.
func (a *Agent) Check(ctx context.Context, folder string) error {
	raw, err := os.ReadFile(filepath.Join(folder, "node_modules", a.pkg, "package.json"))
	var found struct {
		Version string `json:"version"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	if err == nil && found.Version != a.Version {
		err = fmt.Errorf("it is at %s", found.Version)
	}
	if err != nil {
		return fmt.Errorf("%s %s is not installed: scripts/npm -C e2e/agents: %w", a.pkg, a.Version, err)
	}
	bin, err := Bin(folder)
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(bin, a.Program), a.shows...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s is installed, but its program doesn't run on %s/%s: npm brought no package for this platform, or did not run its install script: %w: %.500s", a.pkg, runtime.GOOS, runtime.GOARCH, err, out)
	}
	return nil
}

// Settings writes what the agents read into dir, for a model at an address that is
// spoken with in a way (see Agent.API), and gives what they need in the environment
// besides their programs on PATH.
func Settings(dir, model, api string) (env []string, err error) {
	providers := map[string]string{"anthropic": "@ai-sdk/anthropic", "openai": "@ai-sdk/openai-compatible"}
	raw, err := json.Marshal(map[string]any{
		"model": "mock/m1", "small_model": "mock/m1",
		"permission": map[string]string{"bash": "ask", "edit": "ask"},
		"provider": map[string]any{"mock": map[string]any{
			"npm":     providers[api], // opencode has these in it
			"options": map[string]string{"baseURL": model + "/v1", "apiKey": "no-key"},
			"models":  map[string]any{"m1": map[string]any{"name": "m1", "tool_call": true, "limit": map[string]int{"context": 100000, "output": 4000}}},
		}},
	})
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "opencode.json")
	return []string{
		"OPENCODE_CONFIG=" + config, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		"npm_config_offline=true", // opencode would fetch a package for plugins, which are none
		"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=no-key", "IS_SANDBOX=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
	}, os.WriteFile(config, raw, 0o600)
}
