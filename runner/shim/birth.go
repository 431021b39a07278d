package shim

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// birthPatience bounds the wait for a shim that is to end, or to open a gate, or
	// was kept ready.
	birthPatience = 10 * time.Second
	// leftPatience bounds the wait for what an earlier server prepared under the same id.
	leftPatience = 5 * time.Second
	// maxBirths bounds how many shims in a row may end before they hold a command at its
	// gate, of those that weren't kept ready.
	maxBirths = 3
)

// lineFD is what a shim inherits besides 0, 1 and 2: the server's line to it.
const lineFD = 3

// shimEnv is a shim's environment, with nothing of the server's but shimInherits. Its
// heap is kept small: there are as many shims as commands.
var shimEnv = []string{"GOGC=50", "GOMAXPROCS=2", "GOTRACEBACK=none"}

// shimInherits are the variables that it takes over; the last two make it stop at
// a crash point, in builds that have any.
var shimInherits = []string{"TMPDIR", "HOLDFAST_CRASH", "HOLDFAST_CRASH_REACHED"}

// Prepare has a shim hold the command at its gate: nothing of the script has run.
// The caller has journalled no dispatch of this call and number yet. An
// error means that nothing runs and nothing is left. When ctx ends, Prepare does,
// with its cause; the child that it has returned goes on.
func (r *Root) Prepare(ctx context.Context, s Spec) (*Child, error) {
	id := ID{CallID: s.CallID, N: s.N}
	if err := id.check(); err != nil {
		return nil, err
	}
	r.reap()
	for births := 0; ; {
		c, ahead, err := r.attempt(ctx, id, s)
		if !ahead { // one that was kept ready may have ended long since, unseen
			births++
		}
		// Somebody has killed it: its gate was never opened, and its launcher ended with
		// it. So nothing has run, and another is asked.
		if errors.Is(err, errSilent) && births < maxBirths && ctx.Err() == nil {
			continue
		}
		return c, err
	}
}

// attempt is Prepare with one shim. ahead: it was kept ready.
func (r *Root) attempt(ctx context.Context, id ID, s Spec) (_ *Child, ahead bool, err error) {
	lock, err := r.claim(ctx, id)
	if err != nil {
		return nil, false, fmt.Errorf("make folder of %s: %w", id, err)
	}
	c := &Child{r: r, id: id, base: context.WithoutCancel(ctx)}
	if ahead, err = c.start(lock); err == nil {
		err = c.birth(ctx, s, ahead)
	}
	if err != nil {
		c.discard()
		return nil, ahead, err
	}
	return c, ahead, nil
}

// claim makes a child's folder with its lock taken. What is there already is of a
// server that went away before it had journalled the dispatch; if that opened a
// gate all the same, or was concluded upon, it is an error.
func (r *Root) claim(ctx context.Context, id ID) (*os.File, error) {
	folder := filepath.Join(r.dir, id.String())
	if err := os.MkdirAll(r.dir, 0o700); err != nil { // somebody may have removed it
		return nil, err
	}
	err := os.Mkdir(folder, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if err = r.clear(ctx, id); err == nil {
			err = os.Mkdir(folder, 0o700)
		}
	}
	if err != nil {
		return nil, err
	}
	lock, err := lockNew(r.path(id, lockName))
	if err != nil {
		_ = r.Remove(id)
	}
	return lock, err
}

// lockNew makes a lock file and takes its lock.
func lockNew(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	held, err := takeAlone(lock)
	if err == nil && !held {
		err = errors.New("another process holds its lock")
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// clear removes what was left under an id of which nothing has run.
func (r *Root) clear(ctx context.Context, id ID) error {
	spent := func() error {
		for _, name := range []string{openedName, tombstoneName} {
			if _, err := os.Stat(r.path(id, name)); err == nil {
				return fmt.Errorf("it has been started or given up already: its folder holds %s", name)
			}
		}
		return nil
	}
	for start, wait := time.Now(), (backoff{}); ; {
		if err := spent(); err != nil {
			return err
		}
		found, err := r.Find(id)
		if err != nil {
			return err
		}
		if !found.Running {
			break
		}
		if time.Since(start) > leftPatience {
			return errors.New("it is prepared already, by a server that hasn't gone away")
		}
		if err := pause(ctx, &wait); err != nil {
			return err
		}
	}
	if err := spent(); err != nil { // while it still ran
		return err
	}
	return r.Remove(id)
}

// pause waits for the next pause of wait, or returns the cause of ctx's end.
func pause(ctx context.Context, wait *backoff) error {
	timer := wait.next()
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// start finds a shim and hands it the lock, which this process then has no more.
func (c *Child) start(lock *os.File) (ahead bool, err error) {
	folder, err := os.Open(filepath.Join(c.r.dir, c.id.String()))
	if err != nil {
		return false, errors.Join(fmt.Errorf("start shim of %s: %w", c.id, err), lock.Close())
	}
	b, err := c.r.newborn()
	if err != nil {
		return false, errors.Join(fmt.Errorf("start shim of %s: %w", c.id, err), lock.Close(), folder.Close())
	}
	c.shim, c.line = b.process, b.line
	if err := b.hand(lock, folder); err != nil {
		return b.ahead, fmt.Errorf("start shim of %s: %w", c.id, silent(err))
	}
	return b.ahead, nil
}

func (r *Root) environ() []string {
	env := append([]string(nil), shimEnv...)
	for _, name := range shimInherits {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, r.env...)
}

// birth is prepare. One that was kept ready and doesn't answer in time, since somebody
// has stopped it, is ended: another is asked then.
func (c *Child) birth(ctx context.Context, s Spec, ahead bool) error {
	if !ahead {
		return c.prepare(ctx, s)
	}
	timely, cancel := context.WithTimeoutCause(ctx, birthPatience, errSilent)
	defer cancel()
	err := c.prepare(timely, s)
	if errors.Is(err, errSilent) {
		_ = c.shim.Kill() // it may have ended
	}
	return err
}

// prepare tells the shim what to run and takes the facts of the process.
func (c *Child) prepare(ctx context.Context, s Spec) error {
	defer c.interruptible(ctx)()
	got, err := c.say(order{Spec: s.wire()})
	var no *refusal
	switch {
	case errors.As(err, &no):
		return err // in the words of package tool
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("start shim of %s: %w", c.id, err)
	case got.Process == nil:
		return fmt.Errorf("start shim of %s: it told no process", c.id)
	}
	c.process = *got.Process
	return nil
}

// interruptible lets ctx end what waits for the shim at birth, until the function
// that it returns was called.
func (c *Child) interruptible(ctx context.Context) (done func()) {
	var wg sync.WaitGroup
	wg.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer wg.Done()
		_ = c.line.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			wg.Wait()
		}
	}
}

// errSilent says that a shim has ended, and not said why, or is ended for its silence.
var errSilent = errors.New("it ended without a word")

// silent gives errSilent for what a line says whose other end is gone.
func silent(err error) error {
	for _, gone := range []error{io.EOF, unix.ECONNRESET, unix.EPIPE} {
		if errors.Is(err, gone) {
			return errSilent
		}
	}
	return err
}

// say gives an order and takes its answer; what the shim says is wrong is an error
// in its words.
func (c *Child) say(o order) (answer, error) {
	var got answer
	if err := json.NewEncoder(c.line).Encode(o); err != nil {
		return got, silent(err)
	}
	if c.lines == nil {
		c.lines = bufio.NewReader(c.line)
	}
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return got, silent(err)
	}
	if err := json.Unmarshal(line, &got); err != nil {
		return got, err
	}
	if got.Error != "" {
		return got, &refusal{got.Error, got.Ended, got.Full}
	}
	return got, nil
}

// Go opens the gate, once, and returns when it is open. An error doesn't say that
// it stays closed: Follow tells what became of the child, as after a restart.
func (c *Child) Go() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.line == nil:
		return fmt.Errorf("open the gate of %s: it isn't ours to open", c.id)
	case c.went:
		return fmt.Errorf("open the gate of %s: that was done already", c.id)
	}
	c.went = true
	deadline := time.Now().Add(birthPatience)
	_ = c.line.SetDeadline(deadline)
	got, err := c.say(order{Go: true})
	defer c.r.keepSpare()
	if err == nil && !got.Gone {
		err = errors.New("it gave another answer")
	}
	return wrap(err, "open the gate of %s", c.id)
}

// Abandon ends a child whose gate wasn't opened, waits for that, and removes its
// folder. After Go it does nothing, so it may be deferred; nor does it for a child
// that was attached to.
func (c *Child) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.line == nil || c.went {
		return
	}
	c.went = true
	c.discard()
}

// discard ends a shim whose gate is closed and removes its folder.
func (c *Child) discard() {
	c.detach()
	if c.shim != nil {
		kill := time.AfterFunc(birthPatience, func() { _ = c.shim.Kill() })
		c.r.await(c.shim)
		kill.Stop()
	}
	// What can't be removed now is of a child that never ran; whoever lists finds it.
	_ = c.r.Remove(c.id)
}

// detach closes what this process holds of the shim.
func (c *Child) detach() {
	if c.line != nil {
		_ = c.line.Close()
	}
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// Reap detaches, and waits for the end of a shim that this process has started, whose
// record Follow has given.
func (c *Child) Reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.detach()
	if c.shim != nil {
		c.r.await(c.shim)
	}
}

// keep remembers a shim that this process has to reap.
func (r *Root) keep(p *os.Process) {
	r.reaping.Lock()
	defer r.reaping.Unlock()
	r.started = append(r.started, p)
}

// reap reaps the shims that have ended. Each use of the root does, so no goroutine
// has to wait for a shim that runs for hours.
func (r *Root) reap() {
	r.reaping.Lock()
	defer r.reaping.Unlock()
	living := r.started[:0]
	for _, p := range r.started {
		if !hasEnded(p) {
			living = append(living, p)
			continue
		}
		_, _ = p.Wait() // a subreaper's own reaping may have been first
	}
	clear(r.started[len(living):])
	r.started = living
}

// await waits for a shim's end and reaps it.
func (r *Root) await(p *os.Process) {
	r.reaping.Lock()
	for i, q := range r.started {
		if p == q {
			r.started = append(r.started[:i], r.started[i+1:]...)
			break
		}
	}
	r.reaping.Unlock()
	_, _ = p.Wait()
}
