package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"holdfast/journal"
)

// shownCommands is how many of the commands that run are told one by one.
const shownCommands = 20

// ShimSeen is what was seen of the shim of a dispatched call.
type ShimSeen struct {
	Lives    bool
	PID      int  // 0: it can't be told
	Recorded bool // it is gone, and left how its command ended
}

// command is a call that the journal has as running, and what is seen of its shim.
type command struct {
	call *journal.Call
	seen ShimSeen
	err  error // nobody could look
}

func (c *command) gone() bool { return c.err == nil && !c.seen.Lives }

// shims tells which commands run under shims of this state folder: those of the
// journal, and what is seen of their shims.
func (d *doctor) shims(ctx context.Context) {
	const check = "shims"
	id, own, err := ownFolderID(d.dir)
	switch {
	case err != nil:
		d.add(check, Warning, err.Error(), "make the state folder readable for the server's user")
		return
	case id != "" && !own:
		d.add(check, Healthy, "this folder is a copy: what runs belongs to the folder that it was copied from", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	list, now, err := d.commands(ctx, id)
	if err != nil {
		d.add(check, Wrong, err.Error(), "")
		return
	}
	d.add(check, Healthy, countWords(list), "")
	for _, one := range list[:min(len(list), shownCommands)] {
		d.command(one, now)
	}
}

// commands reads what the journal has as running under the shims of a folder, the oldest
// first, and looks at each.
func (d *doctor) commands(ctx context.Context, folder string) (list []command, now int64, err error) {
	calls, now, err := d.dispatched(ctx, folder)
	for _, c := range calls {
		one := command{call: c, seen: ShimSeen{Lives: true}}
		if d.look != nil {
			one.seen, one.err = d.look(c)
		}
		list = append(list, one)
	}
	if err != nil || !slices.ContainsFunc(list, func(c command) bool { return c.gone() }) {
		return list, now, err
	}
	// A command that ended just now has lost its shim, and is none that runs any more.
	calls, now, err = d.dispatched(ctx, folder)
	return slices.DeleteFunc(list, func(one command) bool {
		return one.gone() && !slices.ContainsFunc(calls, func(c *journal.Call) bool { return c.ID == one.call.ID && c.N == one.call.N })
	}), now, err
}

func (d *doctor) dispatched(ctx context.Context, folder string) (calls []*journal.Call, now int64, err error) {
	err = d.s.read(ctx, func(q querier) error {
		calls = nil
		k := q.dialect()
		if err := q.get(ctx, &now, "SELECT "+k.now(), k.nowArg()); err != nil {
			return err
		}
		list, err := runningWhere(ctx, q, "p.state_folder_id = ?", folder)
		if err != nil {
			return err
		}
		for _, one := range list {
			calls = append(calls, one.Call)
		}
		return liveOutput(ctx, q, calls[:min(len(calls), shownCommands)])
	})
	return calls, now, err
}

// countWords says how many commands run, and of how many the shim is gone.
func countWords(list []command) string {
	running := slices.DeleteFunc(slices.Clone(list), func(c command) bool { return c.gone() })
	found := "no command runs"
	if n := len(running); n > 0 {
		since := stampOf(running[0].call.DispatchedAt)
		found = fmt.Sprintf("%d commands run, the oldest since %s", n, since)
		if n == 1 {
			found = "1 command runs, since " + since
		}
	}
	if gone := len(list) - len(running); gone > 0 {
		found += fmt.Sprintf("; of %d more the shim is gone", gone)
	}
	if len(list) > shownCommands {
		found += fmt.Sprintf("; here are the %d oldest", shownCommands)
	}
	return found
}

// concludes is who deals with what a shim has left.
const concludes = "its server, or the next start, "

func (d *doctor) command(one command, now int64) {
	c := one.call
	found := fmt.Sprintf("session %s, call %s, since %s, %d bytes of output so far, limit %s", c.SessionID, c.ID, stampOf(c.DispatchedAt), c.OutputBytes, stampOf(c.EndsBy()))
	switch {
	case one.err != nil:
		d.add("command", Warning, found+"; its shim can't be looked at: "+one.err.Error(), "run the doctor as the server's user")
		return
	case one.seen.Recorded:
		d.add("command", Healthy, found+"; it has ended: "+concludes+"records how", "")
		return
	case !one.seen.Lives:
		d.add("command", Warning, found+"; its shim is gone: "+concludes+"concludes it", "")
		return
	case one.seen.PID > 0:
		found += fmt.Sprintf(", shim pid %d", one.seen.PID)
	}
	if c.EndsBy() < now {
		d.add("command", Healthy, found+"; its limit has passed", "start the server: it records how it ended")
		return
	}
	d.add("command", Healthy, found, "")
}

func stampOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// ownFolderID reads what LockState has written down, without the lock.
func ownFolderID(dir string) (id string, own bool, err error) {
	birth, err := birthOf(filepath.Join(dir, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil // not served so far
	}
	if err != nil {
		return "", false, fmt.Errorf("look at the state folder's lock: %w", err)
	}
	return readFolderID(filepath.Join(dir, "id"), birth)
}
