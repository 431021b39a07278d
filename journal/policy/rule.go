package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Action is what a rule does with what it matches.
type Action string

// The three actions. Deny is stricter than ask, ask than allow.
const (
	Allow Action = "allow"
	Deny  Action = "deny"
	Ask   Action = "ask"
)

// The permissions that a rule can speak about.
const (
	PermissionRead     = "read"
	PermissionEdit     = "edit"
	PermissionShell    = "shell"
	PermissionWeb      = "web"
	PermissionMCP      = "mcp"
	PermissionExternal = "external_directory"
	PermissionLoop     = "loop"
)

// MaxPattern is the longest pattern that Validate takes, in bytes.
const MaxPattern = 1024

var permissions = []string{
	PermissionRead, PermissionEdit, PermissionShell, PermissionWeb,
	PermissionMCP, PermissionExternal, PermissionLoop,
}

// Rule is one line of a ruleset: what to do with the resources of one
// permission that a pattern matches.
type Rule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     Action `json:"action"`
}

// Validate reports why the rule can't be taken, in words for the person who
// wrote it, or nil: unknown permission or action, a pattern that is empty,
// longer than MaxPattern, not UTF-8, or holds NUL.
func (r Rule) Validate() error {
	switch {
	case !slices.Contains(permissions, r.Permission):
		return fmt.Errorf("unknown permission %q: use one of %s", r.Permission, strings.Join(permissions, ", "))
	case r.Pattern == "":
		return fmt.Errorf("the pattern is empty: use * to match everything")
	case len(r.Pattern) > MaxPattern:
		return fmt.Errorf("the pattern is longer than %d bytes", MaxPattern)
	case !utf8.ValidString(r.Pattern):
		return fmt.Errorf("the pattern isn't valid UTF-8")
	case strings.ContainsRune(r.Pattern, 0):
		return fmt.Errorf("the pattern holds a NUL character")
	}
	switch r.Action {
	case Allow, Deny, Ask:
		return nil
	default:
		return fmt.Errorf("unknown action %q: use allow, deny or ask", r.Action)
	}
}

// ownPort is one that an address has without saying so.
var ownPort = regexp.MustCompile(`:(80|443)$`)

// matches reports whether the rule speaks about the value under permission.
func (r Rule) matches(permission, value string) bool {
	if r.Permission != permission {
		return false
	}
	if permission != PermissionWeb {
		return Match(r.Pattern, value)
	}
	pattern := webPattern(r.Pattern)
	return Match(pattern, value) || r.Action != Allow && Match(ownPort.ReplaceAllString(pattern, ""), value)
}
