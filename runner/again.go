package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/journal"
)

// askedAgain says why a call is asked about once more, in words for people: what was
// allowed, or waited, isn't what would be run now (PER-4), or it was let run, and may have
// run. "": it is asked for the first time, or the agent asks for something more.
func (t *Turn) askedAgain(c *journal.Call, permission string, w Wish) string {
	var before *journal.Request
	for _, r := range t.fold.Requests(c.ID) {
		if r.Permission == permission && askOf(r) == w.Ask && (r.State == journal.RequestPending || r.State == journal.RequestApprovedOnce) {
			before = r
		}
	}
	switch {
	case before == nil && c.Began() && c.AllowedBy != nil && c.AllowedBy.Type == journal.AllowedByAgent && !c.LetItself():
		return "The agent began it without asking, and asks now whether it may."
	case before == nil && c.Began() && !c.LetItself():
		return "It was let run before, and the agent asks once more whether it may."
	case before == nil:
		return ""
	}
	first := "It was asked before, and not answered."
	if before.State == journal.RequestApprovedOnce {
		first = "It was allowed before, and wasn’t run."
	}
	var was requestMetadata
	_ = json.Unmarshal(before.Metadata, &was) // an older one doesn't say all of it
	files := changedFiles(was.Seen, w.Seen)
	switch {
	case was.InputSHA256 != c.InputSHA256:
		return first + " Since then the agent has said something else of this call."
	case len(files) > 0:
		return fmt.Sprintf("%s Since then what lies in %s has changed.", first, inALine(files))
	}
	return first + " Since then what it would touch has changed."
}

// changedFiles are those of which something else was seen now than before.
func changedFiles(before, now []SeenFile) []string {
	was := map[string]string{}
	for i, part := range seenPart(before) {
		was[before[i].Path] = part
	}
	var out []string
	for i, part := range seenPart(now) {
		if was[now[i].Path] != part {
			out = append(out, now[i].Path)
		}
	}
	return out
}

// inALine names a few files.
func inALine(files []string) string {
	const most = 3
	names := slices.Clone(files[:min(len(files), most)])
	for i, name := range names {
		names[i] = journal.Cut(name, 200)
	}
	if more := len(files) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}
