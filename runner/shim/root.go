package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/runner/tool"
)

// What lies in a child's folder.
const (
	lockName      = "lock"
	spoolName     = "spool"
	stdinName     = "stdin.log"
	sockName      = "sock"
	recordName    = "exit.json"
	recordDraft   = "exit.tmp"
	tombstoneName = "tombstone"
	openedName    = "opened" // it exists once the gate is about to open
)

// ErrLost says that a child isn't running and left no exit record: its shim was
// killed, or the host went down, and the command with it. How it ended, and
// whether it did, is unknown.
var ErrLost = errors.New("the command's shim ended without an exit record")

// Exe is the binary that Prepare starts, with the one argument shim. "" is the
// running binary itself, also if its file has been replaced meanwhile.
var Exe string

// Root is the folder that holds a folder for each child.
type Root struct {
	dir string
	exe string
	env []string // added to a shim's environment

	mu      sync.Mutex    // probes and burials of this process take turns
	reaping sync.Mutex    // guards started
	started []*os.Process // shims that are our children, until they are reaped
	sparing sync.Mutex    // guards what follows
	spare   *newborn
	closed  bool
}

// Open makes the folder if need be, with mode 0700. It refuses one that others can
// enter, or that is another user's: what commands print lies in it.
func Open(dir string) (*Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open shim folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open shim folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open shim folder: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("open shim folder: %s has mode %04o, so others can read what commands print; make it 0700", dir, mode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("open shim folder: %s belongs to another user (uid %d)", dir, st.Uid)
	}
	r := &Root{dir: dir, exe: Exe}
	if r.exe == "" {
		if r.exe, err = ownBinary(); err != nil {
			return nil, fmt.Errorf("open shim folder: find the running binary: %w", err)
		}
	}
	return r, nil
}

// ownBinary names the running binary, if it can by what runs and not by a path
// that may hold another version by now.
func ownBinary() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}

// ID names a child: a call's nth dispatch.
type ID struct {
	CallID string
	N      int
}

// String is the name of the child's folder.
func (id ID) String() string { return id.CallID + "." + strconv.Itoa(id.N) }

// check refuses what can't be the name of a folder.
func (id ID) check() error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
	}
	if id.CallID == "" || len(id.CallID) > 200 || id.CallID[0] == '.' || strings.ContainsFunc(id.CallID, odd) || id.N < 0 {
		return fmt.Errorf("child %q: letters, digits, _, - and . only, at most 200", id.String())
	}
	return nil
}

// parseID is the reverse of String.
func parseID(name string) (ID, bool) {
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return ID{}, false
	}
	n, err := strconv.Atoi(name[dot+1:])
	id := ID{CallID: name[:dot], N: n}
	return id, err == nil && id.check() == nil && id.String() == name
}

func (r *Root) path(id ID, name string) string { return filepath.Join(r.dir, id.String(), name) }

// List returns all children that have a folder, by call and number.
func (r *Root) List() ([]ID, error) {
	r.reap()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("list shims: %w", err)
	}
	var ids []ID
	for _, e := range entries {
		if id, ok := parseID(e.Name()); ok && e.IsDir() {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b ID) int {
		if c := strings.Compare(a.CallID, b.CallID); c != 0 {
			return c
		}
		return a.N - b.N
	})
	return ids, nil
}

// Found is the evidence of a child (CAL-5).
type Found struct {
	Running bool  // its shim lives
	Exit    *Exit // nil: no record, or it is running
}

// Exit is a child's exit record.
type Exit struct {
	Started      bool         `json:"started"` // false: its gate was never opened; nothing of it ran
	ExitCode     *int         `json:"exit_code"`
	Signal       string       `json:"signal,omitempty"`
	Reason       string       `json:"reason,omitempty"` // as tool.Result.Reason, or ReasonOrphaned, ReasonTerminated, or what End was given
	OutputBytes  int64        `json:"output_bytes"`
	DroppedBytes int64        `json:"dropped_bytes"`
	Survivors    []int        `json:"survivors,omitempty"`
	Error        string       `json:"error,omitempty"` // what lies behind Reason, for a log
	StartedAt    int64        `json:"started_at"`      // Unix ms
	EndedAt      int64        `json:"ended_at"`
	Spool        int64        `json:"spool"` // the spool's length
	Process      tool.Process `json:"process"`
}

// Why a command was ended, besides the reasons of package tool.
const (
	ReasonOrphaned   = "orphaned"   // no server was there for Spec.Orphan
	ReasonTerminated = "terminated" // its shim was told to end by a signal
)

// Find tells what is known of a child: whether its shim lives, and else its exit
// record. The lock is looked at first: a shim writes its record before it lets go
// of the lock, so that there is no moment in which an ended command shows neither.
// A child without a folder is neither.
func (r *Root) Find(id ID) (Found, error) {
	if err := id.check(); err != nil {
		return Found{}, err
	}
	r.reap()
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := r.free(id)
	if err != nil || !free {
		return Found{Running: err == nil}, wrap(err, "look for shim %s", id)
	}
	exit, err := r.record(id)
	return Found{Exit: exit}, wrap(err, "look for shim %s", id)
}

// Look is Find for who isn't the server of a folder of shims: it makes nothing there,
// and its look is in nobody's way.
func Look(dir string, id ID) (Found, error) { return (&Root{dir: dir}).Find(id) }

// Bury is Find for who is about to conclude that the outcome is unknown: if the
// child neither runs nor has a record, a tombstone is left under its lock, in a
// folder that is made if need be. A shim that finds it starts nothing.
func (r *Root) Bury(id ID) (Found, error) {
	if err := id.check(); err != nil {
		return Found{}, err
	}
	r.reap()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(filepath.Join(r.dir, id.String()), 0o700); err != nil {
		return Found{}, fmt.Errorf("bury shim %s: %w", id, err)
	}
	lock, err := os.OpenFile(r.path(id, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return Found{}, fmt.Errorf("bury shim %s: %w", id, err)
	}
	defer func() { _ = lock.Close() }()
	held, err := takeAlone(lock)
	if err != nil || !held {
		return Found{Running: err == nil}, wrap(err, "bury shim %s", id)
	}
	defer func() { _ = unlock(lock) }()
	exit, err := r.record(id)
	if exit != nil || err != nil {
		return Found{Exit: exit}, wrap(err, "bury shim %s", id)
	}
	if err := writeSynced(r.path(id, tombstoneName), nil); err != nil {
		return Found{}, fmt.Errorf("bury shim %s: %w", id, err)
	}
	return Found{}, wrap(syncDirs(filepath.Join(r.dir, id.String()), r.dir), "bury shim %s", id)
}

// Remove removes a child's folder, and refuses while it runs. No folder is no
// error.
func (r *Root) Remove(id ID) error {
	if err := id.check(); err != nil {
		return err
	}
	r.reap()
	r.mu.Lock()
	defer r.mu.Unlock()
	lock, err := os.OpenFile(r.path(id, lockName), os.O_RDWR, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("remove shim %s: %w", id, err)
	default:
		defer func() { _ = lock.Close() }()
		held, err := takeAlone(lock)
		if err != nil {
			return fmt.Errorf("remove shim %s: %w", id, err)
		}
		if !held {
			return fmt.Errorf("remove shim %s: its command is running", id)
		}
		defer func() { _ = unlock(lock) }()
	}
	return wrap(os.RemoveAll(filepath.Join(r.dir, id.String())), "remove shim %s", id)
}

// Read gives what the spool of a child that isn't running holds from an offset
// on, as Follow does; what its shim was writing when it was killed is left out.
// No spool is no error: nothing was printed.
func (r *Root) Read(ctx context.Context, id ID, from int64, deliver func(pieces []tool.Piece, next int64) error) error {
	if err := id.check(); err != nil {
		return err
	}
	spool, err := openSpool(r.path(id, spoolName), from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read output of %s: %w", id, err)
	}
	defer spool.close()
	_, err = spool.deliver(ctx, deliver)
	return err
}

// Trim gives the disk back the part of a child's spool before an offset, once that
// is committed as read: of one that runs for days nobody needs it. It may be read
// nowhere before that offset any more. No spool is no error; nor is a file system
// that can't, which keeps it.
func (r *Root) Trim(id ID, upTo int64) error {
	if err := id.check(); err != nil {
		return err
	}
	file, err := os.OpenFile(r.path(id, spoolName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("trim the spool of %s: %w", id, err)
	}
	defer func() { _ = file.Close() }()
	if err := punch(file, upTo); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("trim the spool of %s: %w", id, err)
	}
	return nil
}

// free reports whether a child's lock is held by nobody. r.mu is held.
func (r *Root) free(id ID) (bool, error) {
	lock, err := os.Open(r.path(id, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }()
	// Shared, so that it isn't in the way of another who only looks.
	held, err := tryLock(lock, unix.LOCK_SH)
	if held {
		err = unlock(lock)
	}
	return held, err
}

// wrap says what was attempted, if it failed.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
