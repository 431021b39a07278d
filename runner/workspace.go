package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"holdfast/journal"
	"holdfast/store"
)

// markerFile carries a workspace's id. A folder that was replaced, or that is
// another one on another host, has another id or none (WSP-1).
const markerFile = ".holdfast-workspace"

// Workspaces are the folders under which workspaces may lie.
type Workspaces struct{ roots []string }

// NewWorkspaces resolves the roots. Each must be a folder.
func NewWorkspaces(roots []string) (Workspaces, error) {
	var w Workspaces
	for _, r := range roots {
		resolved, err := realFolder(r)
		if err != nil {
			return w, fmt.Errorf("use %s for workspaces: %w", r, err)
		}
		w.roots = append(w.roots, resolved)
	}
	if len(w.roots) == 0 {
		return w, errors.New("no folder for workspaces was given")
	}
	return w, nil
}

// Roots gives the folders, resolved.
func (w Workspaces) Roots() []string { return w.roots }

func realFolder(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(resolved)
	if err == nil && !info.IsDir() {
		err = errors.New("it isn't a folder")
	}
	return resolved, err
}

// resolve gives the resolved path of a workspace that lies under a root, after
// symlinks. path is absolute, or relative to the first root.
func (w Workspaces) resolve(path string) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) || len(path) > 4096 {
		return "", journal.Errorf(journal.Unprocessable, "Say which folder to work in: a path, absolute or relative to %s.", w.roots[0]).Typed("workspace-missing")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.roots[0], path)
	}
	resolved, err := realFolder(path)
	if err != nil {
		return "", &journal.Error{Code: journal.Unprocessable, Type: "workspace-not-found", Err: err, Message: fmt.Sprintf("There is no folder %s that this server can reach. Nothing was recorded.", path)}
	}
	for _, r := range w.roots {
		if resolved == r || strings.HasPrefix(resolved, strings.TrimSuffix(r, "/")+"/") {
			return resolved, nil
		}
	}
	return "", journal.Errorf(journal.Unprocessable, "%s is not under a folder that this server may work in (%s). Nothing was recorded.", path, strings.Join(w.roots, ", ")).Typed("workspace-outside")
}

// Prepare resolves a workspace for a new session and gives its marker, writing
// one if there is none yet. Code: unprocessable.
func (w Workspaces) Prepare(_ context.Context, path string) (resolved, marker string, err error) {
	if resolved, err = w.resolve(path); err != nil {
		return "", "", err
	}
	if marker, err = readMarker(resolved); err == nil {
		return resolved, marker, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if marker, err = writeMarker(resolved); err == nil {
			return resolved, marker, nil
		}
	}
	return "", "", &journal.Error{Code: journal.Unprocessable, Type: "workspace-not-writable", Err: err, Message: fmt.Sprintf("The folder %s can't be marked as a workspace: its %s can't be read or written. Nothing was recorded.", resolved, markerFile)}
}

// Check tells why this worker can't run a session in its workspace, or nil.
func (w Workspaces) Check(b store.SessionBrief) error {
	resolved, err := w.resolve(b.Workspace)
	if err != nil {
		return err
	}
	marker, err := readMarker(resolved)
	if err != nil || marker != b.WorkspaceID || resolved != b.Workspace {
		return fmt.Errorf("the folder %s isn't the one in which this session was made: its marker (%s) is missing or another", b.Workspace, markerFile)
	}
	return nil
}

// readMarker reads a workspace's id. What stands in a workspace may be anything:
// a pipe must not make us wait, nor a device or a huge file be read whole.
func readMarker(dir string) (_ string, err error) {
	f, err := os.OpenFile(filepath.Join(dir, markerFile), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errors.New("the marker isn't a file"))
	}
	b, err := io.ReadAll(io.LimitReader(f, 200))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(b))
	if !strings.HasPrefix(id, "wsp_") || len(id) > 100 {
		return "", errors.New("the marker isn't one of ours")
	}
	return id, nil
}

// writeMarker is safe against another server that marks the same folder: who
// comes second reads the first's.
func writeMarker(dir string) (string, error) {
	id := store.NewID("wsp")
	tmp, err := os.CreateTemp(dir, markerFile+".")
	if err != nil {
		return "", err
	}
	_, err = tmp.WriteString(id + "\n")
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Link(tmp.Name(), filepath.Join(dir, markerFile))
	}
	if rerr := os.Remove(tmp.Name()); err == nil {
		err = rerr
	}
	if errors.Is(err, fs.ErrExist) {
		return readMarker(dir)
	}
	return id, err
}
