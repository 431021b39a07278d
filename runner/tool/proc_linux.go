package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// BootID returns this boot's id. A process of another boot can't be alive.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// pidNamespace names the pids that this process sees: two containers on one
// kernel have the same boot id, maybe the same host name, and other pids. "" if
// it can't be told.
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return name
}

// StartTicks returns when a process started, in clock ticks after boot. A pid
// and its start time name one process for ever; a pid alone doesn't. The
// error is fs.ErrNotExist if there is none.
func StartTicks(pid int) (uint64, error) {
	p, err := readProc(pid)
	return p.ticks, err
}

// processOf returns the facts of the child pid, leader of its group.
func processOf(pid int) (Process, error) {
	boot, err := BootID()
	if err != nil {
		return Process{}, err
	}
	ticks, err := StartTicks(pid)
	if err != nil {
		return Process{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return Process{}, fmt.Errorf("read host name: %w", err)
	}
	return Process{Host: host, BootID: boot, PIDs: pidNamespace(), PID: pid, PGID: pid, StartedTicks: ticks}, nil
}

// here says why the facts of a process name none that could be alive here: ErrOtherHost, also
// for a process of this kernel whose pids are others; ErrOtherBoot.
func (p Process) here() error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read host name: %w", err)
	}
	switch {
	case p.Host != "" && p.Host != host:
		return fmt.Errorf("%w: %s", ErrOtherHost, p.Host)
	case p.BootID != boot:
		return ErrOtherBoot
	case p.PIDs != "" && p.PIDs != pidNamespace(): // before the version that wrote it down, nothing tells
		return fmt.Errorf("%w: its pids are those of %s", ErrOtherHost, p.PIDs)
	}
	return nil
}

// Parent tells the parent of a command's process while that lives: its shim. 0: it
// can't be told.
func (p Process) Parent() int {
	if p.here() != nil {
		return 0
	}
	now, err := readProc(p.PID)
	if err != nil || now.dead || now.ticks != p.StartedTicks {
		return 0
	}
	return now.parent
}

// proc is what /proc/<pid>/stat tells of a process.
type proc struct {
	pid, parent, pgid, session int
	ticks                      uint64
	dead                       bool // a zombie
}

// readProc reads one process; fs.ErrNotExist if it is gone.
func readProc(pid int) (proc, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, syscall.ESRCH) { // it ended between open and read
		err = fs.ErrNotExist
	}
	if err != nil {
		return proc{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	p, err := parseStat(data)
	if err != nil {
		return proc{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return p, nil
}

// parseStat parses proc_pid_stat(5). The command's name, in parentheses, may
// hold blanks and parentheses: the last one ends it.
func parseStat(data []byte) (proc, error) {
	end := bytes.LastIndexByte(data, ')')
	head, _, _ := bytes.Cut(data, []byte(" "))
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 20 {
		return proc{}, fmt.Errorf("stat line %q: too short", data)
	}
	var err error
	number := func(s string) int {
		n, e := strconv.Atoi(s)
		err = errors.Join(err, e)
		return n
	}
	// fields[0] is the third field of the manual, the state.
	p := proc{
		pid: number(string(head)), parent: number(fields[1]), pgid: number(fields[2]), session: number(fields[3]),
	}
	// A group leader that ended before its threads looks like a zombie, and
	// isn't one.
	p.dead = (fields[0] == "Z" || fields[0] == "X") && number(fields[17]) <= 1
	ticks, e := strconv.ParseUint(fields[19], 10, 64)
	p.ticks = ticks
	return p, errors.Join(err, e)
}

// processes returns all processes that this one may see.
func processes() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var all []proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := readProc(pid)
		switch {
		case err == nil:
			all = append(all, p)
		case !hidden(err):
			// Out of descriptors, say. A list with gaps would read as "ended".
			return nil, err
		}
	}
	return all, nil
}

// hidden reports whether a process can't be read because it has ended or is
// another user's.
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ESRCH)
}

// bears reports whether a process started with the markers of a call's nth
// dispatch in its environment. One without the second was begun by a version that
// had none, and counts. False if it has ended or is another user's.
func bears(pid int, callID string, n int) (bool, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil && !hidden(err) {
		return false, fmt.Errorf("read environment of process %d: %w", pid, err)
	}
	data = append([]byte{0}, data...)
	has := func(entry string) bool { return bytes.Contains(data, []byte("\x00"+entry)) }
	return has(callVariable+"="+callID+"\x00") && (has(dispatchVariable+"="+strconv.Itoa(n)+"\x00") || !has(dispatchVariable+"=")), nil
}

// signalProcess sends sig to the process that pid and start time name, and to
// no other: a descriptor pins the process while its start time is compared.
// A process that is gone is no error.
func signalProcess(pid int, ticks uint64, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	}
	switch now, e := StartTicks(pid); {
	case e != nil && !hidden(e):
		return e
	case e != nil || now != ticks:
		return nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		err = unix.Kill(pid, sig) // no descriptors of processes here
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
