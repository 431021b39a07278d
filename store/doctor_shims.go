package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"holdfast/journal"
)

// shownCommands is how many of the commands that run are told one by one.
const shownCommands = 20

// shims tells which commands run under shims of this state folder: as the journal
// has it, since to ask the shims themselves is for the server.
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
	var n int
	var now int64
	var list []RunningCall
	err = d.s.read(ctx, func(q querier) (err error) {
		k := q.dialect()
		if err := q.get(ctx, &now, "SELECT "+k.now(), k.nowArg()); err != nil {
			return err
		}
		if list, err = runningWhere(ctx, q, "p.state_folder_id = ?", id); err != nil {
			return err
		}
		n, list = len(list), list[:min(len(list), shownCommands)]
		for _, one := range list {
			if err := liveOutput(ctx, q, []*journal.Call{one.Call}); err != nil {
				return err
			}
		}
		return nil
	})
	switch {
	case err != nil:
		d.add(check, Wrong, err.Error(), "")
		return
	case len(list) == 0:
		d.add(check, Healthy, "no command runs", "")
		return
	}
	found := fmt.Sprintf("%d commands run, the oldest since %s", n, stampOf(list[0].Call.DispatchedAt))
	switch {
	case n == 1:
		found = "1 command runs, since " + stampOf(list[0].Call.DispatchedAt)
	case n > len(list):
		found += fmt.Sprintf("; here are the %d oldest", len(list))
	}
	d.add(check, Healthy, found, "")
	for _, one := range list {
		d.command(one, now)
	}
}

func (d *doctor) command(one RunningCall, now int64) {
	c := one.Call
	found := fmt.Sprintf("session %s, call %s, since %s, %d bytes of output so far, limit %s", c.SessionID, c.ID, stampOf(c.DispatchedAt), c.OutputBytes, stampOf(c.EndsBy()))
	if c.EndsBy() < now {
		d.add("command", Healthy, found+", which has passed", "start the server: it records how it ended")
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
