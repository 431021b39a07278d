package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/handlers"
	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/runbook"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/vault"
)

type serveCmd struct {
	agentFlags `embed:""`

	Addr       string        `help:"Where to listen." default:"127.0.0.1:8080" env:"HOLDFAST_ADDR"`
	Workspaces []string      `help:"Folders under which workspaces may lie (default: the current folder)." env:"HOLDFAST_WORKSPACES" placeholder:"DIR"`
	PublicURL  string        `help:"The address that browsers see, behind a proxy." env:"HOLDFAST_PUBLIC_URL" name:"public-url" placeholder:"URL"`
	MaxRunning int           `help:"How many sessions run at once." default:"8" env:"HOLDFAST_MAX_RUNNING"`
	Lease      time.Duration `help:"How long a claim on a session holds without renewal." default:"30s" env:"HOLDFAST_LEASE"`
	Renew      time.Duration `help:"How often claims are renewed; at most a third of the lease." default:"10s" env:"HOLDFAST_RENEW"`
	Sweep      time.Duration `help:"How often expired claims and forgotten work are looked for." default:"10s" env:"HOLDFAST_SWEEP"`
	Rate       float64       `help:"Submissions a second for one owner." default:"50" env:"HOLDFAST_RATE"`
	Burst      int           `help:"Submissions at once for one owner." default:"200" env:"HOLDFAST_BURST"`
	MaxOutput  int64         `help:"Bytes of a command's output that are kept; what is more loses its middle." default:"10485760" env:"HOLDFAST_MAX_OUTPUT" name:"max-output" placeholder:"BYTES"`
	Orphan     time.Duration `help:"How long a command goes on whose server doesn't come back." default:"24h" env:"HOLDFAST_ORPHAN"`
	AgentIdle  time.Duration `help:"How long the process of an agent is kept that nobody needs." default:"10m" env:"HOLDFAST_AGENT_IDLE" name:"agent-idle"`
	Stop       bool          `help:"At SIGTERM end the commands that run, instead of letting them go on." env:"HOLDFAST_STOP_COMMANDS" name:"stop-commands"`
	SecretEnv  []string      `help:"Environment variables whose values are secrets, beside *_TOKEN, *_KEY, *_SECRET and *PASSWORD*." env:"HOLDFAST_SECRET_ENV" placeholder:"NAME"`
}

func (c *serveCmd) check() error {
	switch {
	case c.Renew <= 0 || c.Renew*3 > c.Lease:
		return usageError{fmt.Sprintf("--renew %s must be positive and at most a third of --lease %s", c.Renew, c.Lease)}
	case c.MaxRunning < 1:
		return usageError{"--max-running must be at least 1"}
	case c.Sweep <= 0:
		return usageError{"--sweep must be positive"}
	case c.MaxOutput < 1 || c.Orphan <= 0 || c.AgentIdle <= 0:
		return usageError{"--max-output, --orphan and --agent-idle must be positive"}
	case !(c.Rate > 0) || c.Burst < 1: // not a number is not positive either
		return usageError{"--rate and --burst must be positive"}
	}
	return checkPublicURL(c.PublicURL)
}

// server is all that a serving process holds, in the order in which it is opened.
type server struct {
	cmd    *serveCmd
	c      *common
	log    *slog.Logger
	locks  []*store.Lock
	dir    string // the state folder
	folder string // its id
	store  *store.Store
	shims  *shim.Root
	runner *runner.Runner
	web    *handlers.Server
	ln     net.Listener
	vault  *vault.Keeper
	spaces runner.Workspaces
	agents []string // their names

	offered []offeredAgent // of them, those that are programs
	secrets []string       // what is never shown
	worker  string         // id
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(ctx context.Context, g *common, s streams) error {
	if err := c.check(); err != nil {
		return err
	}
	// A file that may not grow is an error to handle, not a death. The signal is
	// caught, not ignored: what is ignored is ignored by the commands, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGXFSZ)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)

	sv := &server{cmd: c, c: g, log: g.logger(s.err)}
	defer sv.close()
	if err := sv.begin(ctx, s); err != nil {
		return unstarted(err)
	}
	return sv.serve(ctx, signals)
}

// begin opens all that a server holds, says where it is, and lets it claim work.
func (sv *server) begin(ctx context.Context, s streams) error {
	if err := sv.open(ctx); err != nil {
		return err
	}
	if err := sv.announce(ctx, s); err != nil {
		return err
	}
	return sv.runner.Start(ctx)
}

// unstarted says why no server was started, where an error speaks to somebody who
// wanted something recorded.
func unstarted(err error) error {
	var je *journal.Error
	switch {
	case store.NoRoom(err):
		return fmt.Errorf("the disk is full, so the server was not started. Nothing is lost: what was accepted is in the journal, and commands that run go on. Make room on the disk of the journal and the state folder, then start again. The cause: %w", cause(err))
	case errors.As(err, &je) && je.Code == journal.Unavailable && je.Err != nil:
		return fmt.Errorf("the journal can't be written just now, so the server was not started. Nothing is lost: what was accepted is in the journal, and commands that run go on. Start again once that has ended. The cause: %w", je.Err)
	}
	return err
}

// cause is what an error of the domain comes from; any other is its own.
func cause(err error) error {
	var je *journal.Error
	if errors.As(err, &je) && je.Err != nil {
		return je.Err
	}
	return err
}

func (sv *server) open(ctx context.Context) error {
	if err := tool.BecomeSubreaper(); err != nil {
		return fmt.Errorf("become the subreaper of commands: %w", err)
	}
	dir, err := sv.c.stateDir()
	if err != nil {
		return err
	}
	database, err := sv.c.databaseURL()
	if err != nil {
		return err
	}
	lock, folder, err := store.LockState(dir)
	if err != nil {
		return err
	}
	sv.locks, sv.dir, sv.folder = append(sv.locks, lock), dir, folder.ID
	if folder.Was != "" {
		sv.log.Warn("this state folder is a copy of another one, or was restored: it has a new id, and claims of the other end by their leases",
			slog.String("was", folder.Was), slog.String("id", folder.ID))
	}
	if !store.IsPostgres(database) {
		if lock, err = store.LockJournal(database); err != nil {
			return err
		}
		sv.locks = append(sv.locks, lock)
	}
	secrets := secretsOf(database, sv.cmd.SecretEnv)
	sv.store, err = store.Open(ctx, store.Options{URL: database, Secrets: secrets, Logger: sv.log, Faulted: sv.faulted})
	if err != nil {
		return err
	}
	if err := sv.openVault(ctx); err != nil {
		return err
	}
	if err := sv.checkAddress(ctx); err != nil {
		return err
	}
	sv.secrets, sv.worker = secrets, "wrk_"+rand.Text()
	if err := sv.makeRunner(secrets); err != nil {
		return err
	}
	sv.web = handlers.New(handlers.Options{
		Store: sv.store, Logger: sv.log, PublicURL: sv.cmd.PublicURL, Prepare: sv.spaces.Prepare,
		Vault: sv.vault, Rate: sv.cmd.Rate, Burst: sv.cmd.Burst, Version: buildVersion(), Notices: tool.Degraded(),
		WorkerID: sv.worker, Agents: sv.agentPrograms, LookAt: sv.lookAt,
	})
	var lc net.ListenConfig
	if sv.ln, err = lc.Listen(ctx, "tcp", sv.cmd.Addr); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is taken by another process; choose another address, such as --addr 127.0.0.1:8081", sv.cmd.Addr)
		}
		return err
	}
	return nil
}

// openVault opens the credentials before anything is journalled that could hold one.
func (sv *server) openVault(ctx context.Context) error {
	source, err := sv.c.keySource()
	if err != nil {
		return err
	}
	sv.vault, err = vault.Open(ctx, sv.store, source)
	var key *vault.KeyError
	if errors.As(err, &key) {
		return fmt.Errorf("the server was not started: %w", err)
	}
	if err != nil {
		return err
	}
	for _, spoilt := range sv.vault.Spoilt() {
		sv.log.Warn("a credential can't be opened", slog.Any("error", spoilt))
	}
	return nil
}

// secretsOf are the values that are never journalled (OWN-3).
func secretsOf(database string, names []string) []string {
	environ := os.Environ()
	if u, err := url.Parse(database); err == nil {
		p, _ := u.User.Password() // it bears with none
		// As a variable, so that the same bound holds: a short one would hide ordinary words.
		environ = append(environ, "DATABASE_PASSWORD="+p, "DATABASE_PASSWORD="+u.Query().Get("password"))
	}
	return tool.SecretsFromEnv(environ, names)
}

// shimsIn is the folder of a state folder that its shims have.
func shimsIn(state string) string { return filepath.Join(state, "shims") }

func (sv *server) makeRunner(secrets []string) error {
	roots := sv.cmd.Workspaces
	if len(roots) == 0 {
		roots = []string{"."}
	}
	spaces, err := runner.NewWorkspaces(roots)
	if err != nil {
		return usageError{err.Error() + "; nothing is served. Make it, or name others with --workspaces."}
	}
	sv.spaces = spaces
	sv.shims, err = shim.Open(shimsIn(sv.dir))
	if err != nil {
		return err
	}
	if sv.offered, err = sv.cmd.agents(os.Environ()); err != nil {
		return err
	}
	agents := []runner.Agent{runbook.Agent{}}
	for _, a := range sv.offered {
		agents = append(agents, a)
	}
	for _, a := range agents {
		sv.agents = append(sv.agents, a.Name())
	}
	sv.runner, err = runner.New(runner.Options{
		Store: sv.store, Logger: sv.log, WorkerID: sv.worker, StateFolderID: sv.folder, Workspaces: spaces,
		Agents: agents, AgentIdle: sv.cmd.AgentIdle, MaxRunning: sv.cmd.MaxRunning, Lease: sv.cmd.Lease, Renew: sv.cmd.Renew, Sweep: sv.cmd.Sweep,
		Shims: sv.shims, StopCommands: sv.cmd.Stop, Orphan: sv.cmd.Orphan, MaxOutput: sv.cmd.MaxOutput,
		Secrets: secrets, Credentials: sv.vault, Env: tool.BaseEnv(os.Environ()), Version: buildVersion(),
	})
	return err
}

// faulted ends the process after an fsync that failed: the kernel may have
// dropped what it was to write, so only opening the file anew tells what is there.
func (sv *server) faulted(err error) {
	sv.log.Error("the journal's disk failed to sync; leaving at once, start again to recover", slog.Any("error", err))
	os.Exit(exitFailed)
}

// checkAddress refuses to be reachable from outside while nobody can sign in.
func (sv *server) checkAddress(ctx context.Context) error {
	host, _, err := net.SplitHostPort(sv.cmd.Addr)
	if err != nil {
		return usageError{fmt.Sprintf("--addr %s: %v", sv.cmd.Addr, err)}
	}
	if loopback(host) {
		return nil
	}
	has, err := sv.store.HasUsers(ctx)
	if err == nil && !has {
		return usageError{fmt.Sprintf("%s is reachable from other machines and there is no user yet. Make one first: holdfast user add EMAIL", sv.cmd.Addr)}
	}
	return err
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// announce prints what a person needs to know, and where to click.
func (sv *server) announce(ctx context.Context, s streams) error {
	base := baseURL(sv.cmd.PublicURL, sv.ln.Addr().String())
	database, err := sv.c.databaseURL()
	if err != nil {
		return err
	}
	s.say("holdfast %s\njournal %s (%s)\nworkspaces under %s\nagents %s\nlistening on %s\n",
		buildVersion(), shown(database), sv.store.Durable(), strings.Join(sv.spaces.Roots(), ", "), strings.Join(sv.agents, ", "), base)
	for _, d := range tool.Degraded() {
		s.say("note: %s\n", d)
	}
	has, err := sv.store.HasUsers(ctx)
	if err != nil || has {
		return err
	}
	code, err := sv.store.SetupLink(ctx)
	if err != nil {
		return err
	}
	s.say("Open %s/setup?code=%s\n", base, url.QueryEscape(code))
	return nil
}

func (sv *server) serve(ctx context.Context, signals <-chan os.Signal) error {
	served := beside("the web server died", func() error { return sv.web.Serve(sv.ln) })
	for {
		select {
		case err := <-served:
			sv.runner.Stop()
			return fmt.Errorf("serve: %w", err)
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				sv.log.Info("nothing to reload: agents and rules are built in")
				continue
			}
			return sv.stop(ctx, signals, served)
		}
	}
}

// beside runs fn in a goroutine that tells its end, a panic too.
func beside(what string, fn func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("%s: %v", what, p)
			}
		}()
		done <- fn()
	}()
	return done
}

// stop ends gracefully (COO-6); a second signal ends at once.
func (sv *server) stop(ctx context.Context, signals <-chan os.Signal, served <-chan error) error {
	sv.log.Info("stopping: running steps have 15 s to reach a boundary", slog.Bool("ends_commands", sv.cmd.Stop))
	sv.web.NotReady()
	// At once, not after the last request: nothing new is claimed or begun from now on.
	quiet := beside("stopping the runner failed", func() error { sv.runner.Stop(); return nil })
	done := beside("stopping failed", func() error {
		err := sv.web.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			sv.log.Warn("a request that would not end was cut off", slog.Any("error", err))
			err = nil
		}
		return errors.Join(err, <-quiet, <-served)
	})
	for {
		select {
		case err := <-done:
			sv.log.Info("stopped")
			return err
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return errors.New("stopped at once by a second signal; what was running is recovered at the next start")
			}
		}
	}
}

// close releases what open has opened, in reverse.
func (sv *server) close() {
	if sv.ln != nil {
		if err := sv.ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			sv.log.Debug("close the listener", slog.Any("error", err))
		}
	}
	if sv.shims != nil {
		sv.shims.Close()
	}
	if sv.store != nil {
		if err := sv.store.Close(); err != nil {
			sv.log.Warn("close the journal", slog.Any("error", err))
		}
	}
	for _, l := range sv.locks {
		if err := l.Close(); err != nil {
			sv.log.Debug("release a lock", slog.Any("error", err))
		}
	}
}
