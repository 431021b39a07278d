package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/journal/policy"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// command is the command that a call would run, as one line of a shell; "": the agent
// tells none. What a call that executes something was given is its command, if it is no
// object.
func (t told) command() string {
	var command string
	isObject := t.each(func(key string, v json.RawMessage) {
		if key == "command" { // the last of two counts
			command = commandOf(v)
		}
	})
	if !isObject && t.Kind == "execute" {
		return commandOf(t.Input)
	}
	return command
}

// mostArgs bounds the list of words that is read as a command, in bytes: a longer one is
// asked as a member that can't be told.
const mostArgs = 1 << 20

func commandOf(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return wire.Text(raw)
	}
	var given any
	if len(raw) > mostArgs || json.Unmarshal(raw, &given) != nil {
		return ""
	}
	return policy.CommandOf(given)
}

// directories are where a call would run by its input, each once. Which of several it is
// nobody can tell.
func (t told) directories(ws string, runs bool) (dirs []string, untold []policy.Resource) {
	t.each(func(key string, v json.RawMessage) {
		if !policy.SaysWhere(key, runs) || !says(v) {
			return
		}
		dir, known := local(wire.Text(v))
		if home, err := os.UserHomeDir(); err == nil && (dir == "~" || strings.HasPrefix(dir, "~/")) {
			dir = filepath.Join(home, dir[1:])
		}
		all, plainly := meanings(dir)
		if dir == "" || !known || dir[0] == '~' || len(all) > 1 || !plainly {
			untold = append(untold, alwaysAsked(policy.PermissionShell, startOf(key)+": "+startOf(string(v[:min(len(v), 2*mostShown)]))))
			dir = string(v[:min(len(v), mostShown)])
		} else if !filepath.IsAbs(dir) {
			dir = ws + "/" + dir
		}
		if up, is := runner.UpFromLink(dir); is { // where that leads is another folder than it reads
			untold = append(untold, up)
		} else {
			dir = filepath.Clean(dir)
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	})
	if len(dirs) > 1 {
		untold = append(untold, policy.Resource{Permission: policy.PermissionShell, Value: fmt.Sprintf("%d folders to run in", len(dirs)), AlwaysAsk: true, Why: "the agent names several folders for it to run in"})
	}
	return dirs, untold
}

// commandIn are the resources of a command in each of the folders that it may run in.
func commandIn(dirs []string, command, ws string) (out []policy.Resource) {
	if len(dirs) == 0 {
		dirs = []string{ws}
	}
	for _, dir := range dirs[:min(len(dirs), mostDirs)] {
		line := command
		if dir != ws {
			line = "cd " + quoted(dir) + " && " + command
		}
		out = append(out, runner.CommandResources(line, ws)...)
	}
	return out
}

// likelyCommands are the resources of what an input has that most likely are commands, though
// one can't tell: it is asked all the same, but a rule that denies one of them holds.
func (t told) likelyCommands(ws string) (out []policy.Resource) {
	given := map[string][]json.RawMessage{}
	t.each(func(key string, v json.RawMessage) { // the last of two counts
		switch key {
		case "cmd", "script":
			given[key] = []json.RawMessage{v}
		case "commands", "scripts":
			var list []json.RawMessage
			if len(v) <= mostArgs && json.Unmarshal(v, &list) != nil {
				list = []json.RawMessage{v}
			}
			given[key] = list[:min(len(list), mostUnexplained)]
		}
	})
	for _, key := range slices.Sorted(maps.Keys(given)) {
		for _, one := range given[key] {
			if command := commandOf(one); command != "" {
				out = append(out, runner.CommandResources(command, ws)...)
			}
		}
	}
	for i := range out { // it is one of several readings, and asked with the member
		out[i].Opaque = false
	}
	return out
}

// mostDirs bounds in how many folders a command is judged: it is always asked then.
const mostDirs = 4

// titleOnly reports whether what a call would run is told by its input alone, in a form
// that isn't a command's: its title must not be taken for that.
func (t told) titleOnly() bool {
	return len(t.Diffs) == 0 && t.command() == "" && says(t.Input) && (t.Kind == "execute" || t.runsSomething())
}
