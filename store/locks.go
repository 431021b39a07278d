package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Holder is who holds a lock.
type Holder struct {
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// HeldError says that another process owns the journal or the state folder.
type HeldError struct {
	What   string
	Path   string
	Holder Holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s %s is owned by another holdfast: pid %d on %s, since %s. End that server first, or use another one (--state, --database).",
		e.What, e.Path, e.Holder.PID, e.Holder.Host, e.Holder.Since.Format(time.RFC3339))
}

// Lock is held for life; the kernel releases it at any death, so that a new
// holder has proof that the old one is dead (LEA-8, LEA-11).
type Lock struct{ l *flock.Flock }

// LockJournal makes this process the one worker of a SQLite journal (LEA-8). The
// path is resolved through symlinks, so that two names of one file are one lock.
func LockJournal(path string) (*Lock, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, os.ErrNotExist) {
		dir, derr := filepath.EvalSymlinks(filepath.Dir(path))
		if derr != nil {
			return nil, fmt.Errorf("find the journal's folder: %w", derr)
		}
		resolved, err = filepath.Join(dir, filepath.Base(path)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the journal: %w", err)
	}
	return lockFile("The journal", path, resolved+".owner")
}

// StateFolder is what a state folder is known by.
type StateFolder struct {
	ID string // random
	// Was is the id that stood in the folder and isn't its own: it is that of the
	// folder that this one was copied from, or that a backup was made of. "": it had its own.
	Was string
}

// LockState makes this process the one holder of a state folder (LEA-11) and
// gives what the folder is known by: an id that is made at its first use, and
// anew in a copy. So holding the lock proves that earlier workers of that id are dead.
func LockState(dir string) (*Lock, StateFolder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, StateFolder{}, fmt.Errorf("make the state folder: %w", err)
	}
	path := filepath.Join(dir, "lock")
	l, err := lockFile("The state folder", dir, path)
	if err != nil {
		return nil, StateFolder{}, err
	}
	birth, err := birthOf(path)
	if err != nil {
		return nil, StateFolder{}, errors.Join(fmt.Errorf("look at the state folder's lock: %w", err), l.Close())
	}
	folder, err := stateFolder(dir, birth)
	if err != nil {
		return nil, StateFolder{}, errors.Join(err, l.Close())
	}
	return l, folder, nil
}

// stateFolder reads the folder's id, which is bound to the file that is locked:
// beside it stands that file's birth, which no copy and no restored backup has.
// An id whose binding isn't this one is another folder's, or nobody knows whose.
func stateFolder(dir, birth string) (StateFolder, error) {
	path := filepath.Join(dir, "id")
	id, own, err := readFolderID(path, birth)
	if err != nil {
		return StateFolder{}, err
	}
	if own {
		return StateFolder{ID: id}, nil
	}
	folder := StateFolder{ID: NewID("fld"), Was: id}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(folder.ID+"\n"+birth+"\n"), 0o600); err != nil {
		return StateFolder{}, fmt.Errorf("write the state folder's id: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return StateFolder{}, fmt.Errorf("write the state folder's id: %w", err)
	}
	return folder, syncDir(dir)
}

// readFolderID gives the id that stands in a state folder, "" if none does, and
// whether it is the folder's own.
func readFolderID(path, birth string) (id string, own bool, err error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", false, fmt.Errorf("read the state folder's id: %w", err)
	}
	id, bound, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return id, id != "" && bound == birth, nil
}

func lockFile(what, shown, path string) (*Lock, error) {
	l := flock.New(path, flock.SetPermissions(0o600))
	ok, holder, err := tryLock(l, path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", shown, err)
	}
	if !ok {
		return nil, &HeldError{What: what, Path: shown, Holder: holder}
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b, err := json.Marshal(Holder{os.Getpid(), host, time.Now().UTC()})
	if err == nil {
		err = os.WriteFile(path+".holder", b, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write down the holder: %w", err), l.Close())
	}
	return &Lock{l}, nil
}

// lastBreath is how long the lock of a holder that is dead may still be held: a
// child that it was just starting when it was killed has the descriptor until it
// begins its own program.
const lastBreath = 2 * time.Second

// tryLock takes the lock, or tells who holds it. It waits only for a dead holder.
func tryLock(l *flock.Flock, path string) (ok bool, holder Holder, err error) {
	deadline := time.Now().Add(lastBreath)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		if ok, err = l.TryLock(); ok || err != nil {
			return ok, holder, err
		}
		if b, rerr := os.ReadFile(path + ".holder"); rerr == nil {
			// A holder that is just writing itself down is still a holder: its pid is then 0.
			_ = json.Unmarshal(b, &holder)
		}
		if !dead(holder) || time.Now().After(deadline) {
			return false, holder, nil
		}
		<-again.C
	}
}

// dead reports that a holder ran on this host and its process is gone, or waits only
// for somebody to take note of its end.
func dead(h Holder) bool {
	host, err := os.Hostname()
	return err == nil && h.PID > 0 && h.Host == host && (errors.Is(syscall.Kill(h.PID, 0), syscall.ESRCH) || zombie(h.PID))
}

// Close releases the lock.
func (l *Lock) Close() error { return l.l.Close() }
