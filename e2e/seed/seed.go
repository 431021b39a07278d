package seed

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast/journal"
)

// Email is who can sign in to a folder that was filled.
const Email = "seed@example.com"

// Options say what to fill.
type Options struct {
	Dir      string    // must be empty, or not there
	Binary   string    // the product; "": it is built from the module around the current folder
	Database string    // postgres://…, without a user seed@example.com; "": SQLite in the folder
	Large    bool      // with a session of 2,000 calls and one of 100,000 entries
	Log      io.Writer // says what is being done; nil: nobody
}

// Session is one that was made.
type Session struct {
	Name  string                 `json:"name"` // its state, and after an underscore what is special
	ID    string                 `json:"id"`
	State journal.ExecutionState `json:"state"`
}

// Result is what was made, and how to look at it. seed.json in the folder has it, too.
type Result struct {
	State      string    `json:"state_folder"`
	Database   string    `json:"database"`
	Workspaces string    `json:"workspaces"`
	Email      string    `json:"email"`
	Password   string    `json:"password"`
	Token      string    `json:"token"` // for the API, of scope all
	Sessions   []Session `json:"sessions"`
}

// ID gives the id of the session of a name, or "".
func (r *Result) ID(name string) string {
	for _, s := range r.Sessions {
		if s.Name == name {
			return s.ID
		}
	}
	return ""
}

// Serve gives the arguments of a server on the folder, but for --addr.
func (r *Result) Serve() []string {
	args := []string{"serve", "--state", r.State, "--workspaces", r.Workspaces, "--max-running", "1"}
	if filepath.Dir(r.Database) != r.State { // else it is where a server looks by itself
		args = append(args, "--database", r.Database)
	}
	return args
}

// Fill fills a folder. It takes about half a minute; with Large a few more. What
// it started has ended when it returns, also after an error; the folder is then
// of no use.
func Fill(ctx context.Context, o Options) (*Result, error) {
	f, err := prepare(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"make a user and a token", f.user},
		{"make what ends by itself, and lose a server in mid effect", f.firstServer},
		{"recover, and make what runs and waits", f.secondServer},
		{"make what another worker holds", f.otherWorker},
	} {
		f.say("%s", step.what)
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("seed: %s: %w", step.what, errors.Join(err, ctx.Err()))
		}
	}
	b, err := json.MarshalIndent(&f.r, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(o.Dir, "seed.json"), append(b, '\n'), 0o600)
	}
	return &f.r, err
}

// filling is one run of Fill.
type filling struct {
	o Options
	r Result
	c client
}

func prepare(ctx context.Context, o Options) (*filling, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	dir, err := filepath.Abs(o.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return nil, errors.Join(fmt.Errorf("seed: %s is not empty; remove it, or name another folder", dir), err)
	}
	o.Dir = dir
	f := &filling{o: o, r: Result{
		State: filepath.Join(dir, "state"), Database: o.Database, Workspaces: filepath.Join(dir, "work"), Email: Email, Password: strings.ToLower(rand.Text()[:12]),
	}}
	if f.r.Database == "" {
		f.r.Database = filepath.Join(f.r.State, "holdfast.db")
	}
	if err := os.Mkdir(f.r.Workspaces, 0o700); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if o.Binary != "" {
		return f, nil
	}
	f.say("build the server")
	f.o.Binary = filepath.Join(dir, "holdfast")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", f.o.Binary, "holdfast").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("seed: build the server: %w\n%s", err, out)
	}
	return f, nil
}

// say tells what is being done. Nobody can be told that it can't be written.
func (f *filling) say(format string, args ...any) {
	if f.o.Log != nil {
		_, _ = fmt.Fprintf(f.o.Log, format+"\n", args...)
	}
}

func (f *filling) add(name string, state journal.ExecutionState, id string) {
	f.r.Sessions = append(f.r.Sessions, Session{name, id, state})
}

func (f *filling) user(ctx context.Context) error {
	if _, err := f.run(ctx, f.r.Password+"\n", "user", "add", Email, "--password-stdin"); err != nil {
		return err
	}
	out, err := f.run(ctx, "", "token", "new", Email, "--name", "seed", "--expires", "0")
	f.r.Token = strings.TrimSpace(out)
	return err
}
