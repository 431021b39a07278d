package runner

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"holdfast/journal/policy"
)

// Bounds of what is looked at of the folders that one call changes.
const (
	maxNames     = 2000
	maxNameBytes = 256 << 10
)

// Folders has those of an agent's resources judged as folders that are: who deletes one, or
// moves it, changes all that lies in it. Of a call that moves, what lies at one of its
// places comes to lie at the others. The workspace itself is always asked.
func Folders(resources []policy.Resource, workspace string, moves bool) []policy.Resource {
	room := &namesRoom{names: maxNames, bytes: maxNameBytes}
	out := make([]policy.Resource, len(resources))
	var edits []int
	found := false
	for i, r := range resources {
		out[i] = r
		if r.Permission != policy.PermissionEdit || r.Opaque || r.Neutral || r.AlwaysAsk || filepath.IsAbs(r.Value) {
			continue
		}
		edits = append(edits, i)
		out[i].Folder, out[i].Names, out[i].Partly = room.below(filepath.Join(workspace, r.Value))
		found = found || out[i].Folder
	}
	if moves && found {
		together(out, edits)
	}
	for _, i := range edits {
		switch r := &out[i]; {
		case r.Value == ".":
			r.AlwaysAsk, r.Why = true, "it is the workspace itself"
		case r.Partly:
			r.Why = "it holds more than can be looked at"
		}
	}
	return out
}

// together gives each place of a call that moves folders what lies at all of them, by
// itself and under its own name.
func together(all []policy.Resource, places []int) {
	var b strings.Builder
	partly := false
	for _, i := range places {
		r, base := all[i], filepath.Base(all[i].Value)
		partly = partly || r.Partly || b.Len() > maxNameBytes
		if partly {
			continue
		}
		b.WriteString(base + "\x00")
		for name := range strings.SplitSeq(strings.TrimSuffix(r.Names, "\x00"), "\x00") {
			if name != "" {
				b.WriteString(name + "\x00" + base + "/" + name + "\x00")
			}
		}
	}
	for _, i := range places {
		all[i].Folder, all[i].Partly = true, partly
		all[i].Names = b.String()
	}
}

// namesRoom is how much may still be looked at.
type namesRoom struct{ names, bytes int }

// below gives the names of what lies in a folder, if it is one, each ended by a NUL; partly:
// not all of it could be seen. Links aren't followed.
func (room *namesRoom) below(folder string) (is bool, names string, partly bool) {
	if info, err := os.Lstat(folder); err != nil || !info.IsDir() {
		return false, "", false
	}
	var b strings.Builder
	all := room.walk(folder, "", &b)
	return true, b.String(), !all
}

// walk writes the names below a folder, which lies at a path from where it began; false: it
// couldn't see all of them.
func (room *namesRoom) walk(folder, at string, b *strings.Builder) bool {
	d, err := os.Open(folder)
	if err != nil {
		return false
	}
	found, err := d.ReadDir(room.names + 1) // not all at once: there may be millions
	_ = d.Close()
	if err != nil && !errors.Is(err, io.EOF) || len(found) > room.names {
		return false
	}
	room.names -= len(found)
	for _, one := range found {
		name := at + strings.ToValidUTF8(one.Name(), "\uFFFD")
		if room.bytes -= len(name) + 1; room.bytes < 0 {
			return false
		}
		b.WriteString(name + "\x00")
		if one.IsDir() && !room.walk(filepath.Join(folder, one.Name()), name+"/", b) {
			return false
		}
	}
	return true
}
