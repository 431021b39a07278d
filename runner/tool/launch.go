package tool

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

const (
	gateVariable = "HOLDFAST_GATE"
	gateOpen     = "go\n"
	defaultPath  = "/usr/local/bin:/usr/bin:/bin"

	// What the launcher inherits besides 0, 1 and 2.
	gateFD   = 3
	scriptFD = 4
)

// launcher waits at its gate, then becomes the interpreter. End of file at the
// gate ends it without a word. It closes the gate and leaves the environment
// as it found it.
var launcher = fmt.Sprintf(`read -r %[1]s <&%[2]d && [ "$%[1]s" = go ] || exit 125
unset %[1]s
exec "$0" "$@" %[2]d<&-`, gateVariable, gateFD)

// scriptPrefix closes the descriptor through which the interpreter has opened
// the script (it reads from one of its own, closed on exec). It has no line
// of its own, so that line numbers in messages are the author's.
var scriptPrefix = fmt.Sprintf("exec %d<&-;", scriptFD)

// scriptPath names the inherited script. Some small systems have no /dev/fd.
func scriptPath() string {
	if _, err := os.Stat("/dev/fd"); err != nil {
		return fmt.Sprintf("/proc/self/fd/%d", scriptFD)
	}
	return fmt.Sprintf("/dev/fd/%d", scriptFD)
}

// launchCommand returns the launcher as a command that isn't started.
func launchCommand(spec Spec) (*exec.Cmd, error) {
	env := commandEnv(spec.Env, spec.CallID, spec.N)
	interp, err := findInterp(spec.Interp[0], env)
	if err != nil {
		return nil, err
	}
	args := []string{"/bin/sh", "-c", launcher, interp}
	args = append(args, spec.Interp[1:]...)
	return &exec.Cmd{
		Path:        "/bin/sh",
		Args:        append(args, scriptPath()),
		Env:         env,
		Dir:         spec.Dir,
		SysProcAttr: childAttr(),
	}, nil
}

// check reports the first thing in spec that can't be run.
func (s Spec) check() error {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case s.CallID == "" || strings.ContainsFunc(s.CallID, odd):
		return fmt.Errorf("call id %q: visible characters only", s.CallID)
	case len(s.Interp) == 0 || s.Interp[0] == "":
		return fmt.Errorf("no interpreter")
	case !filepath.IsAbs(s.Dir):
		return fmt.Errorf("workspace %q: not an absolute path", s.Dir)
	}
	return nil
}

// findInterp looks an interpreter up in the command's own PATH, so that a
// missing one is an error before the dispatch and not an exit code after it.
func findInterp(name string, env []string) (string, error) {
	file, err := FindProgram(name, env)
	if err != nil {
		return "", fmt.Errorf("interpreter %s: %w", name, exec.ErrNotFound)
	}
	return file, nil
}

// FindProgram gives the file that a command with this environment would run as name:
// by its PATH, or name itself if it is a path, which must be absolute. The error is
// exec.ErrNotFound, or fs.ErrPermission if all that it found may not be executed.
func FindProgram(name string, env []string) (string, error) {
	path := defaultPath
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	if strings.Contains(name, "/") {
		path, name = filepath.Dir(name), filepath.Base(name)
	}
	why := exec.ErrNotFound
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		switch {
		case !filepath.IsAbs(file) || err != nil:
		case info.Mode().IsRegular() && info.Mode()&0o111 != 0 && unix.Access(file, unix.X_OK) == nil:
			return file, nil
		default:
			why = fs.ErrPermission
		}
	}
	return "", why
}

// unlinkedScript writes the script to a file without a name.
func unlinkedScript(text string) (*os.File, error) {
	file, err := os.CreateTemp("", "holdfast-script-*")
	if err != nil {
		return nil, fmt.Errorf("keep script: %w", err)
	}
	if err = os.Remove(file.Name()); err == nil {
		err = fillScript(file, text)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("keep script: %w", err)
	}
	return file, nil
}

// fillScript writes and rewinds: where opening a descriptor by name duplicates
// it, the interpreter starts at its position.
func fillScript(file *os.File, text string) error {
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	_, err := file.Seek(0, 0)
	return err
}
