package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// ErrOtherHost says that a process was started on another host: whether it
// still runs can't be told here.
var ErrOtherHost = errors.New("process belongs to another host")

// ErrOtherBoot says that a process was started in another boot: none of this one
// is its. Whether it still runs depends on whether that was a boot of this host.
var ErrOtherBoot = errors.New("process belongs to another boot")

// KillCall ends what the nth dispatch of a dead server's call left on this host:
// TERM, grace (0: 5 s), KILL. It returns how many processes there were that are gone now.
//
// p are the facts journalled with the dispatch. The group counts as the call's only if its leader has p's
// start time, or if a member carries the dispatch's markers; processes that carry
// them are found wherever they are. So a reused pid is never hit, nothing older
// than the call, and nothing that a later dispatch of it has begun. Errors: ErrOtherHost, also
// for a process of this kernel whose pids are others (a container's); ErrOtherBoot;
// no facts in p; survivors; the
// cause of ctx, which ends the wait between TERM and KILL and so may leave
// processes. The caller sees to it that this process doesn't run the same
// dispatch.
func KillCall(ctx context.Context, callID string, n int, p Process, grace time.Duration) (killed int, err error) {
	if callID == "" || p.BootID == "" || p.PGID <= 0 || p.StartedTicks == 0 {
		return 0, fmt.Errorf("end call %q: its process isn't known", callID)
	}
	if err := p.here(); err != nil {
		return 0, fmt.Errorf("end call %s: %w", callID, err)
	}
	if grace <= 0 {
		grace = defaultGrace
	}
	h := newHunt(callID, n, p)
	survivors := h.end(ctx, grace)
	reapOrphans()
	killed = len(h.known) - len(survivors)
	switch {
	case h.err != nil:
		return killed, fmt.Errorf("end call %s: %w", callID, h.err)
	case len(survivors) > 0 && ctx.Err() != nil:
		return killed, fmt.Errorf("end call %s: %w", callID, context.Cause(ctx))
	case len(survivors) > 0:
		return killed, fmt.Errorf("end call %s: processes %v can't be killed", callID, survivors)
	}
	return killed, nil
}

// KillBelow ends what descends from a living process: all that is left to it, as it is a
// subreaper, among them what bears no marker. It isn't touched itself. Errors are as of
// KillCall; none if it isn't there any more, as nothing descends from it then.
func KillBelow(ctx context.Context, pid int, grace time.Duration) error {
	keeper, err := readProc(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if grace <= 0 {
		grace = defaultGrace
	}
	h := newHunt("", 0, Process{PGID: -1, StartedTicks: keeper.ticks}) // of no group
	h.below = pid
	survivors := h.end(ctx, grace)
	switch {
	case h.err != nil:
		return fmt.Errorf("end what descends from process %d: %w", pid, h.err)
	case len(survivors) > 0:
		return fmt.Errorf("end what descends from process %d: processes %v can't be killed", pid, survivors)
	}
	return nil
}

// EndStrays ends what the processes of the command have left behind: whose parent has
// ended, so that it is ours, with its descendants, if it began at since or later (see
// Ticks). What has the command's own process as an ancestor is none of that. It is for
// a command that is alone (Spec.Alone). It returns the pids that are left.
func (c *Command) EndStrays(ctx context.Context, since uint64, grace time.Duration) (survivors []int, err error) {
	h := newHunt(c.spec.CallID, c.spec.N, c.process)
	h.alone, h.since = true, max(since, 1)
	survivors = h.end(ctx, grace)
	reapOrphans()
	return survivors, h.err
}

// Ticks is now, as StartTicks counts.
func Ticks() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, fmt.Errorf("read the time since boot: %w", err)
	}
	const perSecond = 100 // USER_HZ of all that Go runs on
	return uint64(ts.Sec)*perSecond + uint64(ts.Nsec)*perSecond/uint64(time.Second), nil
}

// hunt finds and ends the processes of one call.
type hunt struct {
	callID string
	n      int // which dispatch of it
	leader Process
	held   bool           // the leader is our unreaped child: its group is ours
	alone  bool           // and so are all our children (Spec.Alone)
	since  uint64         // only what was left to us, and began then or later; 0: all
	below  int            // only what descends from this process; 0: what is the call's
	known  map[int]uint64 // all that were ever found: pid and start time
	err    error          // of the last look
}

func newHunt(callID string, n int, leader Process) *hunt {
	return &hunt{callID: callID, n: n, leader: leader, known: map[int]uint64{}}
}

// find returns the living processes of the call: members of its session and
// group, bearers of its marker, what was found before, and the descendants of
// all these. Never this process. h.err is set if it couldn't look everywhere.
//
// The oldest come first, so that a shell is told to end before the command that
// it waits for: else it would go on with its next one.
func (h *hunt) find() []proc {
	var all []proc
	if all, h.err = h.candidates(); h.err != nil {
		return nil
	}
	// Nothing older than the call is of the call.
	all = slices.DeleteFunc(all, func(p proc) bool {
		return p.pid == os.Getpid() || p.ticks < h.leader.StartedTicks
	})
	found, proven := h.roots(all)
	for more := true; more; {
		more = false
		for _, p := range all {
			_, has := found[p.pid]
			_, parent := found[p.parent]
			if !has && (parent || proven && h.inGroup(p)) {
				found[p.pid] = p
				more = true
			}
		}
	}
	var alive []proc
	for _, p := range found {
		if !p.dead {
			alive = append(alive, p)
			h.known[p.pid] = p.ticks
		}
	}
	slices.SortFunc(alive, func(a, b proc) int {
		return cmp.Or(cmp.Compare(a.ticks, b.ticks), cmp.Compare(a.pid, b.pid))
	})
	return alive
}

// candidates are all among whom the call's processes are. Where we are alone with it
// these are our descendants, which are few: all processes of a host, looked at by each
// of many shims, would be a load.
func (h *hunt) candidates() ([]proc, error) {
	if h.alone {
		if own, ok := descendants(); ok {
			return own, nil
		}
	}
	return processes()
}

// look makes known what is there now, so that it stays known.
func (h *hunt) look() { h.find() }

// roots returns those that are the call's by themselves, and whether one of
// them proves that the group is the call's too.
func (h *hunt) roots(all []proc) (found map[int]proc, proven bool) {
	found, proven = map[int]proc{}, h.held
	below := slices.ContainsFunc(all, func(p proc) bool { return p.pid == h.below && p.ticks == h.leader.StartedTicks })
	for _, p := range all {
		ours := p.pid == h.leader.PGID && p.ticks == h.leader.StartedTicks || h.alone && p.parent == os.Getpid()
		if h.since > 0 {
			ours = p.parent == os.Getpid() && p.pid != h.leader.PID && p.ticks >= h.since
		}
		if h.below > 0 {
			ours = below && p.parent == h.below
		}
		if ticks, before := h.known[p.pid]; before && ticks == p.ticks {
			ours = true
		}
		if !ours && !p.dead && !h.alone && h.below == 0 {
			marked, err := bears(p.pid, h.callID, h.n)
			h.err = errors.Join(h.err, err)
			ours = marked
		}
		if ours {
			found[p.pid] = p
			proven = proven || h.inGroup(p)
		}
	}
	return found, proven
}

func (h *hunt) inGroup(p proc) bool {
	return p.pgid == h.leader.PGID || p.session == h.leader.PGID
}

// end sends TERM, waits for grace, and sends KILL until nothing is left or
// killPatience is over. It returns the pids that are left. A grace of 0 sends
// no TERM. A cancelled ctx ends the waits.
func (h *hunt) end(ctx context.Context, grace time.Duration) (survivors []int) {
	if grace > 0 {
		told := map[int]uint64{}
		ended := h.until(ctx, grace, func(alive []proc) {
			for _, p := range alive {
				if told[p.pid] == p.ticks || signalProcess(p.pid, p.ticks, unix.SIGTERM) != nil {
					continue
				}
				told[p.pid] = p.ticks
				// A stopped process takes its TERM only when it goes on.
				_ = signalProcess(p.pid, p.ticks, unix.SIGCONT)
			}
		})
		if ended || ctx.Err() != nil {
			return pids(h.find())
		}
	}
	h.until(ctx, killPatience, func(alive []proc) {
		if h.held {
			// One signal to the whole group is not outrun by a fork.
			_ = unix.Kill(-h.leader.PGID, unix.SIGKILL)
		}
		for _, p := range alive {
			_ = signalProcess(p.pid, p.ticks, unix.SIGKILL)
		}
	})
	return pids(h.find())
}

// wait reports whether all processes of the call end by themselves in time.
func (h *hunt) wait(ctx context.Context, patience time.Duration) bool {
	return h.until(ctx, patience, func([]proc) {})
}

// until calls act with the living processes, again and again, until there are
// none or the time is over, and reports the former. It looks twice before it
// says none: in the moment of an exec a process shows no environment.
func (h *hunt) until(ctx context.Context, patience time.Duration, act func(alive []proc)) bool {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	pause := 2 * time.Millisecond
	for {
		alive := h.find()
		if len(alive) == 0 && h.err == nil {
			alive = h.find()
		}
		if len(alive) == 0 && h.err == nil {
			return true
		}
		act(alive)
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-deadline.C:
		case <-again.C:
			pause = min(2*pause, 200*time.Millisecond)
			continue
		}
		again.Stop()
		return false
	}
}

func pids(of []proc) []int {
	var list []int
	for _, p := range of {
		list = append(list, p.pid)
	}
	slices.Sort(list)
	return list
}
