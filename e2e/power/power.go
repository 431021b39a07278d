// Package power cuts the power for tests: it ends, at once and with all that
// they run, the shims that a killed server has left. It looks from outside, in
// /proc, since nothing in the product can do it.
package power

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds the wait for what was killed.
const patience = 30 * time.Second

// Shims gives the pids of the shims of a state folder.
func Shims(state string) ([]int, error) {
	state, err := filepath.EvalSymlinks(state)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := pids()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(pid int) bool { return !isShim(pid, filepath.Join(state, "shims")+"/") }), nil
}

// isShim reports whether a process is a shim with its lock open below a folder.
func isShim(pid int, below string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if args := strings.Split(string(line), "\x00"); err != nil || len(args) < 2 || args[1] != "shim" {
		return false
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return err == nil && slices.ContainsFunc(fds, func(fd string) bool {
		to, err := os.Readlink(fd)
		return err == nil && strings.HasPrefix(to, below)
	})
}

// Cut kills the shims of a state folder and all that descends from them, and
// waits until they are gone. The server is to be dead already.
func Cut(state string) error {
	shims, err := Shims(state)
	if err != nil {
		return err
	}
	doomed, err := freeze(shims)
	if err != nil {
		return err
	}
	return kill(doomed)
}

// freeze stops processes and all that descends from them, until there are no more: one
// that runs while the others are looked for can start another, which nobody would kill.
func freeze(roots []int) (all []int, err error) {
	for {
		found, err := withDescendants(roots)
		if err != nil {
			return nil, err
		}
		fresh := slices.DeleteFunc(found, func(pid int) bool { return slices.Contains(all, pid) })
		if len(fresh) == 0 {
			return all, nil
		}
		for _, pid := range fresh {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
				return nil, fmt.Errorf("stop %d: %w", pid, err)
			}
		}
		all = append(all, fresh...)
	}
}

// CutAgents kills the processes that the shims of a state folder run, each its one,
// and spares what these have started. It is for the shim to end that.
func CutAgents(state string) error {
	shims, err := Shims(state)
	if err != nil {
		return err
	}
	all, err := pids()
	if err != nil {
		return err
	}
	return kill(slices.DeleteFunc(all, func(pid int) bool {
		_, parent, ok := stat(pid)
		return !ok || !slices.Contains(shims, parent)
	}))
}

// Marked gives the processes whose environment has an entry, which children inherit.
func Marked(entry string) ([]int, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(pid int) bool {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err != nil || !alive(pid) || !slices.Contains(strings.Split(string(raw), "\x00"), entry)
	}), nil
}

// Family gives a process and all that descends from it, and its parent.
func Family(pid int) (all []int, parent int, err error) {
	_, parent, ok := stat(pid)
	if !ok {
		return nil, 0, fmt.Errorf("there is no process %d", pid)
	}
	all, err = withDescendants([]int{pid})
	return all, parent, err
}

// kill kills processes and waits until they are gone.
func kill(doomed []int) error {
	for _, pid := range doomed {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	late := time.After(patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for slices.ContainsFunc(doomed, alive) {
		select {
		case <-look.C:
		case <-late:
			return fmt.Errorf("of %v some don't end", doomed)
		}
	}
	return nil
}

func withDescendants(roots []int) ([]int, error) {
	all, err := pids()
	if err != nil {
		return nil, err
	}
	out := slices.Clone(roots)
	for more := true; more; {
		more = false
		for _, pid := range all {
			if _, parent, ok := stat(pid); ok && slices.Contains(out, parent) && !slices.Contains(out, pid) {
				out, more = append(out, pid), true
			}
		}
	}
	return out, nil
}

// alive: a zombie isn't.
func alive(pid int) bool {
	state, _, ok := stat(pid)
	return ok && state != 'Z' && state != 'X'
}

func stat(pid int) (state byte, parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	// The name in brackets may hold blanks and brackets.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return fields[0][0], parent, err == nil
}

func pids() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out, nil
}
