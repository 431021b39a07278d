package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"

	"holdfast/store"
	"holdfast/vault"
)

// defaultConfig is read from the current folder if it is there.
const defaultConfig = "holdfast.toml"

// common are the flags of every command. They may stand before or after its name.
type common struct {
	Database  string `help:"The journal: a SQLite file, or postgres://… (default: holdfast.db in the state folder)." env:"HOLDFAST_DATABASE" placeholder:"PATH|URL"`
	State     string `help:"The state folder: locks, shims and, unless --database says otherwise, the journal (default: $$XDG_STATE_HOME/holdfast)." env:"HOLDFAST_STATE" placeholder:"DIR"`
	KeyFile   string `help:"The file with the key that credentials are sealed with; made when the first is stored (default: key in the state folder). HOLDFAST_KEY may hold the key itself instead." env:"HOLDFAST_KEY_FILE" name:"key-file" placeholder:"FILE"`
	Config    string `help:"A TOML file with flags as keys (default: holdfast.toml in the current folder, if it is there)." env:"HOLDFAST_CONFIG" placeholder:"FILE"`
	LogFormat string `help:"Format of the logs on standard error." enum:"text,json" default:"text" env:"HOLDFAST_LOG_FORMAT"`
	LogLevel  string `help:"Least severe level that is logged." enum:"debug,info,warn,error" default:"info" env:"HOLDFAST_LOG_LEVEL"`
}

func (c *common) stateDir() (string, error) {
	if c.State != "" {
		return c.State, nil
	}
	if x := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(x) {
		return filepath.Join(x, "holdfast"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the state folder: %w; name one with --state", err)
	}
	return filepath.Join(home, ".local", "state", "holdfast"), nil
}

func (c *common) databaseURL() (string, error) {
	if scheme, _, found := strings.Cut(c.Database, "://"); found && !store.IsPostgres(c.Database) {
		return "", usageError{fmt.Sprintf("--database knows the path of a SQLite file and postgres://, not %s://", scheme)}
	}
	if c.Database != "" {
		return c.Database, nil
	}
	dir, err := c.stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "holdfast.db"), nil
}

// keySource is where the key of credentials is. The key itself is in no flag: command
// lines can be read by others.
func (c *common) keySource() (vault.Source, error) {
	s := vault.Source{File: c.KeyFile, Env: os.Getenv(vault.KeyVariable)}
	if s.File != "" {
		return s, nil
	}
	dir, err := c.stateDir()
	s.File = filepath.Join(dir, "key")
	return s, err
}

func (c *common) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // kong has checked it
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// configPath finds --config among the arguments before they are parsed: the
// file takes part in the parsing.
func configPath(args []string) (path string, given bool) {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--config="); ok {
			return v, true
		}
		if a == "--config" && i+1 < len(args) {
			return args[i+1], true
		}
	}
	if v := os.Getenv("HOLDFAST_CONFIG"); v != "" {
		return v, true
	}
	return defaultConfig, false
}

// readConfig reads the file's keys. A missing one is an error only if it was named.
func readConfig(args []string) (map[string]any, error) {
	path, given := configPath(args)
	values := map[string]any{}
	_, err := toml.DecodeFile(path, &values)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return values, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no configuration at %s (--config, HOLDFAST_CONFIG), so nothing was done", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration %s: %w; nothing was done", path, err)
	}
	return values, nil
}

// resolver gives kong the file's values, and refuses keys that are no flag of any command.
func resolver(values map[string]any) kong.Resolver {
	return fileResolver{values}
}

type fileResolver struct{ values map[string]any }

func (r fileResolver) Validate(app *kong.Application) error {
	known := flagNames(app.Node)
	for key := range r.values {
		if !slices.Contains(known, key) {
			return fmt.Errorf("the configuration has the key %q, which is no flag of holdfast", key)
		}
	}
	return nil
}

func flagNames(n *kong.Node) []string {
	var out []string
	for _, f := range n.Flags {
		out = append(out, f.Name)
	}
	for _, c := range n.Children {
		out = append(out, flagNames(c)...)
	}
	return out
}

func (r fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	v, ok := r.values[flag.Name]
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set { // the environment counts before the file; kong would have it the other way round
			ok = false
		}
	}
	if !ok {
		return nil, nil
	}
	if list, ok := v.([]any); ok {
		parts := make([]string, len(list))
		for i, p := range list {
			parts[i] = fmt.Sprint(p)
		}
		return strings.Join(parts, string(cmp.Or(flag.Tag.Sep, ','))), nil
	}
	return fmt.Sprint(v), nil
}
