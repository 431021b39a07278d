package runner

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"holdfast/journal"
	"holdfast/journal/policy"
)

// SeenFile is what lay where an agent would write a whole file, when that was asked.
type SeenFile struct {
	Path  string    `json:"path"` // as the agent has it
	State SeenState `json:"state"`
	Bytes int64     `json:"bytes,omitempty"`
	Text  *string   `json:"text,omitempty"` // all of it, if it is short and may be read
}

// SeenState says whether a file was there.
type SeenState string

// What a look at a file finds.
const (
	SeenNew     SeenState = "new"
	SeenExists  SeenState = "exists"
	SeenUnknown SeenState = "unknown" // it can't be looked at
)

// Bounds of what is kept of files that were looked at.
const (
	maxSeenText = 6 << 10 // of one
	maxSeen     = 8 << 10 // of all, in an event
)

// SeeFiles looks at the files that an agent would write whole. What finds no room isn't
// listed: nothing is known of it then.
func SeeFiles(paths []string, workspace string) []SeenFile {
	var out []SeenFile
	room := maxSeen
	for _, path := range paths {
		f := seeFile(path, workspace)
		size := encodedSize(f)
		if size > room && f.Text != nil {
			f.Text = nil
			size = encodedSize(f)
		}
		if room -= size; room < 0 {
			break
		}
		out = append(out, f)
	}
	return out
}

// seeFile looks at one file of the workspace. The text of one that the presets guard
// isn't read, nor is what is no plain file.
func seeFile(path, workspace string) SeenFile {
	f := SeenFile{Path: path, State: SeenUnknown}
	r := FileResource(policy.PermissionRead, path, workspace)
	if r.Permission != policy.PermissionRead {
		return f
	}
	file := filepath.Join(workspace, r.Value)
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.State = SeenNew
		return f
	case err != nil || !info.Mode().IsRegular():
		return f
	}
	f.State, f.Bytes = SeenExists, info.Size()
	if f.Bytes > maxSeenText || policy.Evaluate(policy.AskWrites, nil, []policy.Resource{r}).Action != policy.Allow {
		return f
	}
	if text, ok := readText(file); ok {
		f.Text, f.Bytes = &text, int64(len(text))
	}
	return f
}

// readText reads a short plain file of text. It waits for nobody: what lies there may
// have become something else since it was looked at.
func readText(path string) (string, bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0) //nolint:gosec // it lies in the workspace, as was found out
	if err != nil {
		return "", false
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSeenText+1))
	if err != nil || len(b) > maxSeenText || !utf8.Valid(b) || strings.ContainsRune(string(b), 0) {
		return "", false
	}
	return string(b), true
}

// seenPart is what a request's digest has of what was seen: if that changes, what would
// be lost isn't what was shown.
func seenPart(seen []SeenFile) []string {
	var out []string
	for _, f := range seen {
		part := "seen " + string(f.State) + " " + f.Path
		if f.Text != nil {
			part += " " + journal.Hash(*f.Text)
		}
		out = append(out, part)
	}
	return out
}
