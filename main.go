// Holdfast is a self-hosted server on which agents do long missions that belong
// to the server. This file is the command line; what it wires lies in serve.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"holdfast/runner/shim"
	"holdfast/store"
	"holdfast/vault"
)

// Exit codes (docs/operations.md).
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitHeld   = 3 // the journal or the state folder is owned by another worker
)

// version is set when a release is linked; else it is read from the build.
var version = ""

func buildVersion() string {
	if version != "" {
		return version
	}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return "dev"
}

// usageError is wrong use: exit code 2.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

type cli struct {
	common
	Serve   serveCmd         `cmd:"" default:"withargs" help:"Serve the pages and the API, and run missions (the default)."`
	Migrate migrateCmd       `cmd:"" help:"Bring the database up to date and leave."`
	User    userCmd          `cmd:"" help:"Add, list and disable users, and make sign-in links."`
	Token   tokenCmd         `cmd:"" help:"Make, list and revoke API tokens."`
	Creds   credentialCmd    `cmd:"" name:"credential" help:"Look after the credentials that people store for their agents."`
	Verify  verifyCmd        `cmd:"" help:"Check a journal, read-only, also while it is served."`
	Doctor  doctorCmd        `cmd:"" help:"Check what a server rests on; writes nothing."`
	Export  exportCmd        `cmd:"" help:"Write a whole session as JSON or Markdown."`
	Backup  backupCmd        `cmd:"" help:"Copy a SQLite journal, also while it is served."`
	Version kong.VersionFlag `help:"Print the version and leave."`
}

func main() {
	// The process that has a command (package shim) is this binary, too. It stays
	// small: nothing else is made. A build that ships comes here as package early.
	if len(os.Args) == 2 && os.Args[1] == "shim" {
		shim.Crash = store.Crash
		os.Exit(shim.Main())
	}
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run is main with its surroundings as arguments.
func run(ctx context.Context, args []string, s streams) int {
	values, err := readConfig(args)
	if err != nil {
		return report(s, usageError{err.Error()})
	}
	var c cli
	left := -1
	parser, err := kong.New(&c, kong.Name("holdfast"), kong.UsageOnError(), kong.Writers(s.out, s.err), kong.Resolvers(resolver(values)),
		kong.Description("Durable missions for coding and data agents. Without a command: serve."),
		kong.Exit(func(code int) { left = code }), kong.BindTo(ctx, (*context.Context)(nil)), kong.Vars{"version": "holdfast " + buildVersion()})
	if err != nil {
		return report(s, err)
	}
	k, err := parser.Parse(args)
	if left >= 0 { // --help and --version have been answered
		return left
	}
	if err != nil {
		return report(s, misused(err, args))
	}
	return report(s, k.Run(&c.common, s))
}

// misused says of arguments that can't be understood which command they were for, and
// where it is told what that takes.
func misused(err error, args []string) error {
	var words []string
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		for _, p := range parse.Context.Path {
			if p.Command != nil && slices.Contains(args, p.Command.Name) { // else it is the default
				words = append(words, p.Command.Name)
			}
		}
	}
	command := strings.Join(words, " ")
	said := legible(strings.TrimPrefix(err.Error(), command+": "))
	if command == "" {
		return usageError{said + "; nothing was done. holdfast --help lists the commands."}
	}
	return usageError{fmt.Sprintf("%s: %s; nothing was done. holdfast %s --help says what it takes.", command, said, command)}
}

// report says an error in one line and gives the exit code for it.
func report(s streams, err error) int {
	if err == nil {
		return exitDone
	}
	if !errors.Is(err, errSaid) {
		s.complain("holdfast: %v\n", err)
	}
	var usage usageError
	var held *store.HeldError
	var key *vault.KeyError
	switch {
	case errors.As(err, &usage), errors.As(err, &key):
		return exitUsage
	case errors.As(err, &held):
		return exitHeld
	}
	return exitFailed
}

// errSaid fails a command that has said all itself.
var errSaid = errors.New("failed")
