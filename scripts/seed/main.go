// Seed fills a folder with sessions in every state, and says how to look at them:
//
//	go run ./scripts/seed [-large] [-database postgres://…] DIR
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/e2e/seed"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	large := flag.Bool("large", false, "with a session of 2,000 calls and one of 100,000 entries")
	database := flag.String("database", "", "a Postgres database instead of SQLite in the folder")
	flag.Parse()
	if flag.NArg() != 1 {
		return fmt.Errorf("usage: seed [-large] [-database postgres://…] DIR")
	}
	r, err := seed.Fill(ctx, seed.Options{Dir: flag.Arg(0), Database: *database, Large: *large, Log: os.Stderr})
	if err != nil {
		return err
	}
	args := r.Serve()
	if here, err := os.Getwd(); err == nil {
		for i, a := range args {
			if rel, err := filepath.Rel(here, a); err == nil && filepath.IsAbs(a) && !strings.HasPrefix(rel, "..") {
				args[i] = rel
			}
		}
	}
	out := os.Stdout
	for _, s := range r.Sessions {
		_, _ = fmt.Fprintf(out, "%-20s /sessions/%s\n", s.Name, s.ID)
	}
	_, err = fmt.Fprintf(out, "\ngo run . %s --addr 127.0.0.1:8081\nsign in at http://localhost:8081/login as %s with %s\n"+
		"(by that name a sign-in at 127.0.0.1 stays: a browser keeps one for each name, whatever the port)\n"+
		"end it with Ctrl-C; a command that waits in there goes on, unless you add --stop-commands\n", strings.Join(args, " "), r.Email, r.Password)
	return err
}
