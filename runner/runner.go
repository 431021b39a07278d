package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"holdfast/journal"
	"holdfast/runner/shim"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/vault"
)

// stopGrace is how long a graceful stop lets running steps reach a boundary (COO-6).
const stopGrace = 15 * time.Second

// agentIdle is how long the process of an agent is kept that nobody needs.
const agentIdle = 10 * time.Minute

// Options say how a worker works.
type Options struct {
	Store         *store.Store
	Logger        *slog.Logger
	WorkerID      string // random; a new one for each process
	StateFolderID string // of the state folder whose lock this process holds (LEA-11)
	Workspaces    Workspaces
	Agents        []Agent
	MaxRunning    int
	Lease, Renew  time.Duration
	Sweep         time.Duration
	Grace         time.Duration // of a graceful stop; 0: 15 s
	RecoverGrace  time.Duration // TERM to KILL for what a lost execution left; 0: 2 s
	AnswerWithin  time.Duration // for the shim of an agent that is to be stopped, before its process is ended without it; 0: 10 s
	Shims         *shim.Root    // of the same state folder
	StopCommands  bool          // a graceful stop ends commands, instead of leaving them to their shims
	AgentIdle     time.Duration // how long the process of an agent is kept that nobody needs; 0: 10 min
	Orphan        time.Duration // how long a command goes on whose server doesn't come back; 0: 24 h
	MaxOutput     int64         // bytes of a command's output that are kept; 0: 10 MiB
	Secrets       []string      // masked in output (OWN-3)
	Credentials   *vault.Keeper // what agents get in their environment besides; nil: nothing
	Env           []string      // of the commands
	Version       string
}

// Runner is one worker. Start it once; Stop returns when all that it started has ended.
type Runner struct {
	o      Options
	store  *store.Store
	log    *slog.Logger
	agents map[string]Agent
	host   string
	room   func(bytes int64) bool // whether the disk of the shims has so much left, or nobody can tell
	kill   func(ctx context.Context, callID string, n int, p tool.Process, grace time.Duration) (int, error)

	mu       sync.Mutex
	runs     map[string]*run // by session: one drain each (COO-1)
	queue    []string        // sessions that wait for a place, first come first served
	queued   map[string]bool // the same, to look up
	stopping bool
	missing  []store.Place    // workspaces of waiting sessions that this worker lacks, as of its last sweep
	failed   map[string]bool  // executions that have failed here and aren't recovered
	pauses   map[string]pause // by session: of those whose drains have failed here
	keyFault string           // what its last sweep said of credentials
	sweepNow chan struct{}

	occupied   exclusive // shims that are born, followed or cleared away here: see sweepShims
	recovering exclusive // sessions that are recovered just now

	fetch, work            context.Context
	stopFetching, stopWork context.CancelCauseFunc
	stopKeeping            context.CancelFunc
	loops, drains, keepers sync.WaitGroup
	started, stopped       sync.Once
}

// New checks the options. Renewal must be at most a third of the lease (LEA-5).
func New(o Options) (*Runner, error) {
	if o.Renew <= 0 || o.Renew*3 > o.Lease {
		return nil, fmt.Errorf("--renew %s must be at most a third of --lease %s", o.Renew, o.Lease)
	}
	if o.Shims == nil {
		return nil, errors.New("a runner needs a folder for its shims")
	}
	if o.MaxRunning < 1 || o.Sweep <= 0 {
		return nil, errors.New("--max-running and --sweep must be positive")
	}
	o.MaxOutput = cmp.Or(o.MaxOutput, journal.DefaultOutput)
	o.AgentIdle = cmp.Or(o.AgentIdle, agentIdle)
	o.Grace, o.RecoverGrace = cmp.Or(o.Grace, stopGrace), cmp.Or(o.RecoverGrace, recoverGrace)
	o.AnswerWithin = cmp.Or(o.AnswerWithin, answerWithin)
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the host's name: %w", err)
	}
	r := &Runner{
		o: o, store: o.Store, log: o.Logger, agents: map[string]Agent{}, host: host, room: o.Shims.HasRoom, kill: tool.KillCall,
		runs: map[string]*run{}, queued: map[string]bool{}, failed: map[string]bool{}, pauses: map[string]pause{}, sweepNow: make(chan struct{}, 1),
	}
	for _, a := range o.Agents {
		r.agents[a.Name()] = a
	}
	return r, nil
}

// Start expires the claims of earlier workers of this state folder, whose death
// the folder's lock proves (LEA-11), and starts to work. The context ends nothing:
// Stop does.
func (r *Runner) Start(ctx context.Context) error {
	var err error
	r.started.Do(func() {
		base := context.WithoutCancel(ctx)
		r.fetch, r.stopFetching = context.WithCancelCause(base)
		r.work, r.stopWork = context.WithCancelCause(base)
		var keep context.Context
		keep, r.stopKeeping = context.WithCancel(base)
		err = r.begin(ctx)
		if err != nil {
			return
		}
		wakes := r.store.SubscribeWork()
		r.spawn(&r.keepers, "keeper", func() { r.keep(keep) })
		r.spawn(&r.loops, "coordinator", func() { defer wakes.Close(); r.coordinate(r.fetch, wakes) })
		r.spawn(&r.loops, "sweeper", func() { r.sweepLoop(r.fetch) })
	})
	return err
}

func (r *Runner) begin(ctx context.Context) error {
	// Seen first: as long as a worker of this folder lives, nobody else concludes
	// what only it can ask.
	if err := r.store.SeeWorker(ctx, r.worker()); err != nil {
		return fmt.Errorf("write the worker down: %w", err)
	}
	n, err := r.store.ExpireFolder(ctx, r.o.StateFolderID, r.o.WorkerID)
	if err != nil {
		return fmt.Errorf("expire the claims of earlier workers: %w", err)
	}
	if n > 0 {
		r.log.Info("taking up what earlier servers of this state folder were at", slog.Int64("sessions", n))
	}
	if err := r.store.ForgetWorkers(ctx, r.o.StateFolderID, r.o.WorkerID); err != nil {
		return fmt.Errorf("forget earlier workers: %w", err)
	}
	return nil
}

func (r *Runner) worker() store.Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := store.Worker{
		ID: r.o.WorkerID, StateFolderID: r.o.StateFolderID, Host: r.host, PID: os.Getpid(), Version: r.o.Version,
		Places: r.o.MaxRunning, Running: len(r.runs), Draining: r.stopping, Agents: []store.Agent{}, Missing: r.missing,
	}
	for _, a := range r.o.Agents {
		why := unavailable(a)
		w.Agents = append(w.Agents, store.Agent{Name: a.Name(), Kind: a.Kind(), Available: why == "", Reason: why, Steer: string(a.Steer())})
	}
	return w
}

// see writes this worker down, which is all that handlers know of it.
func (r *Runner) see(ctx context.Context) {
	if err := r.store.SeeWorker(ctx, r.worker()); err != nil {
		r.log.Warn("write the worker down", slog.Any("error", err))
	}
}

// Stop takes no more work, lets running steps reach a boundary for at most 15 s,
// then leaves what runs to its shim, with its claim; or, with StopCommands, ends
// it: its call is cancelled, its turn interrupted (COO-6).
func (r *Runner) Stop() {
	r.stopped.Do(func() {
		if r.stopFetching == nil {
			return
		}
		r.mu.Lock()
		r.stopping, r.queue = true, nil
		clear(r.queued)
		r.mu.Unlock()
		r.stopFetching(ErrShutdown)
		r.loops.Wait()
		r.see(r.work)
		quiet := make(chan struct{})
		r.spawn(&r.loops, "stop", func() { r.drains.Wait(); close(quiet) })
		t := time.NewTimer(r.o.Grace)
		defer t.Stop()
		select {
		case <-quiet:
		case <-t.C:
			r.stopWork(ErrShutdown)
		}
		<-quiet
		r.endIdleAgents()
		r.stopWork(ErrShutdown)
		r.stopKeeping()
		r.keepers.Wait()
	})
}

// spawn starts one goroutine of the runner. A panic in it is reported and ends
// it alone; a drain that dies so has failed.
func (r *Runner) spawn(wg *sync.WaitGroup, name string, fn func()) {
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer func() {
			if p := recover(); p != nil {
				r.log.Error("runner goroutine died", slog.String("name", name), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			}
		}()
		fn()
	}()
}

// coordinate hears of work and gives places.
func (r *Runner) coordinate(ctx context.Context, wakes *store.WorkSub) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wakes.C():
			sessions, resync := wakes.Take()
			for _, id := range sessions {
				r.Wake(id)
			}
			if resync {
				r.kickSweep()
			}
		}
	}
}

func (r *Runner) kickSweep() {
	select {
	case r.sweepNow <- struct{}{}:
	default:
	}
}

// Wake says that a session may have work. While its drain runs it is told; one
// more pass follows, however many wakes came (COO-1).
func (r *Runner) Wake(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return
	}
	if run := r.runs[session]; run != nil {
		run.again = true
		run.poke()
		return
	}
	r.enqueue(session)
	r.fill()
}

// enqueue lets a session wait for a place, once. The lock is held.
func (r *Runner) enqueue(session string) {
	if !r.queued[session] {
		r.queued[session] = true
		r.queue = append(r.queue, session)
	}
}

// fill gives free places to who waits longest (COO-3). The lock is held.
func (r *Runner) fill() {
	for len(r.queue) > 0 && r.taken() < r.o.MaxRunning && !r.stopping {
		session := r.queue[0]
		r.queue = r.queue[1:]
		r.launch(session, false)
	}
}

// taken counts the places that are taken. The lock is held.
func (r *Runner) taken() (n int) {
	for _, run := range r.runs {
		if !run.extra {
			n++
		}
	}
	return n
}

// launch starts a drain. The lock is held.
func (r *Runner) launch(session string, extra bool) {
	delete(r.queued, session)
	run := newRun(r.work, session)
	run.extra = extra
	r.runs[session] = run
	r.spawn(&r.drains, "drain "+session, func() { r.drive(run) })
}

// follow wakes a session in which something runs that is to be followed, or ended:
// that waits for no place (COO-2 c, d).
func (r *Runner) follow(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return
	}
	if run := r.runs[session]; run != nil {
		run.again = true
		run.poke()
		return
	}
	r.queue = slices.DeleteFunc(r.queue, func(id string) bool { return id == session })
	r.launch(session, r.taken() >= r.o.MaxRunning)
}

// mayBegin reports whether a run may begin something new. One without a place
// takes one that is free, or else leaves the rest to those that wait in line.
func (r *Runner) mayBegin(run *run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run.extra && r.taken() < r.o.MaxRunning {
		run.extra = false
	}
	return !run.extra
}

// drive runs drains of one session until no wake came during the last.
func (r *Runner) drive(run *run) { r.driveWith(run, r.drain) }

func (r *Runner) driveWith(run *run, drain func(*run)) {
	defer r.done(run)
	for {
		drain(run)
		r.mu.Lock()
		again := run.again && !run.extra && !r.stopping && run.ctx.Err() == nil
		if again {
			run.again = false // else done lets another run have it
		}
		r.mu.Unlock()
		if !again {
			return
		}
	}
}

func (r *Runner) done(run *run) {
	run.cancel(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, run.session)
	if run.again && !r.stopping { // a wake that came after the last look
		r.enqueue(run.session)
	}
	r.fill()
}

// Active tells the executions of this process, by session.
func (r *Runner) Active() map[string]string {
	out := map[string]string{}
	for id, h := range r.claimed() {
		out[h.run.session] = id
	}
	return out
}

// holding is a claim that a run holds, and how long it may act on it. A run may
// release it and hold another one while somebody looks.
type holding struct {
	run   *run
	claim *journal.Claim
	trust *trust
}

// claimed gives what the runs hold, by execution id.
func (r *Runner) claimed() map[string]*holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]*holding{}
	for _, run := range r.runs {
		if h := run.holds(); h != nil {
			out[h.claim.ExecutionID] = h
		}
	}
	return out
}

func (r *Runner) stops() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}

// run is one session's drain in this process.
type run struct {
	session string
	ctx     context.Context // ends at lease loss and at the end of a graceful stop
	cancel  context.CancelCauseFunc
	again   bool               // under the runner's lock
	extra   bool               // it has no place, since it only follows or ends what runs; under the runner's lock
	trust   *trust             // of the claim that the drain has; for the drain alone
	brief   store.SessionBrief // likewise
	moves   int                // likewise: how often the turn has moved on, one right after the other
	movedAt time.Time

	mu    sync.Mutex
	held  *holding
	call  context.CancelCauseFunc // ends what is executed just now
	poked chan struct{}           // somebody committed something to this session
}

func newRun(work context.Context, session string) *run {
	ctx, cancel := context.WithCancelCause(work)
	return &run{session: session, ctx: ctx, cancel: cancel, poked: make(chan struct{}, 1)}
}

// maxMoves is how often a turn may move on under its agent without a pause of a
// second: people don't answer so fast.
const maxMoves = 100

// spins notes that the turn has moved on, and reports whether it does so without end:
// then what the agent wants to record can't be recorded.
func (r *run) spins(now time.Time) bool {
	if now.Sub(r.movedAt) > time.Second {
		r.moves = 0
	}
	r.movedAt = now
	r.moves++
	return r.moves > maxMoves
}

// poke tells a drain that executes something to look for an interrupt.
func (r *run) poke() {
	select {
	case r.poked <- struct{}{}:
	default:
	}
}

func (r *run) holds() *holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// hold notes the claim of this drain, granted by a round trip that was started then.
func (r *run) hold(c *journal.Claim, started time.Time, lease time.Duration) {
	r.trust = newTrust(started, lease)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = &holding{run: r, claim: c, trust: r.trust}
}

// letGo notes that there is no claim any more, so that it is neither renewed
// nor lost, and reports whether there was one.
func (r *run) letGo() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.held != nil
	r.held = nil
	return had
}

// lose ends the run at once because its claim is gone (LEA-3, LEA-12). It
// reports whether the run still held it: who was told late must not end what
// holds another one by now.
func (r *run) lose(execution string) bool {
	if h := r.holds(); h == nil || h.claim.ExecutionID != execution {
		return false
	}
	r.cancel(ErrLeaseLost)
	return true
}

// executing notes what to end when a person interrupts; nil: nothing is executed.
func (r *run) executing(cancel context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call = cancel
}

func (r *run) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.call != nil {
		r.call(ErrInterrupted)
	}
}
