package acp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// text is what a tool shows, but for changes of files. What isn't text is named, in a line
// of its own.
func text(content []wire.ToolContent) string {
	out := ""
	line := func(format string, a ...any) {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		out += fmt.Sprintf("["+format+"]\n", a...)
	}
	for _, c := range content {
		switch c := c.(type) {
		case wire.ToolBlock:
			if t, ok := c.Content.(wire.TextBlock); ok {
				out += unfenced(t.Text)
			} else if r, ok := c.Content.(wire.ResourceBlock); ok && r.Resource.Text != nil {
				line("resource: %s", r.Resource.URI)
				out += *r.Resource.Text
			} else {
				line("%s", blockName(c.Content))
			}
		case wire.Terminal:
			line("terminal: %s", c.TerminalID)
		case wire.UnknownToolContent:
			line("%s", unknownContent(c.Raw))
		}
	}
	return out
}

// blockName names a block that isn't text.
func blockName(b wire.Block) string {
	switch b := b.(type) {
	case wire.ImageBlock:
		return inALine("image", b.MIMEType, b.URI, encodedBytes(b.Data))
	case wire.AudioBlock:
		return inALine("audio", b.MIMEType, encodedBytes(b.Data))
	case wire.LinkBlock:
		return "resource link: " + inALine(b.URI, b.Name, b.Title, b.Description, b.MIMEType)
	case wire.ResourceBlock:
		size := ""
		if b.Resource.Blob != nil {
			size = encodedBytes(*b.Resource.Blob)
		}
		return "resource: " + inALine(b.Resource.URI, b.Resource.MIMEType, size)
	case wire.UnknownBlock:
		return unknownContent(b.Raw)
	}
	return "nothing"
}

// mostUnknown bounds what is kept of content that this build doesn't know.
const mostUnknown = 4 << 10

func unknownContent(raw []byte) string {
	return "content of an unknown kind: " + journal.Cut(string(raw), mostUnknown)
}

// inALine puts together what there is.
func inALine(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// encodedBytes says how many bytes a text in base64 stands for.
func encodedBytes(base64 string) string {
	return fmt.Sprintf("%d bytes", len(strings.TrimRight(base64, "="))*3/4)
}

// mostRaw bounds what is taken of a tool's output in a form of its own.
const mostRaw = 256 << 10

// shows is what a call shows now as its output; "": nothing is said of that. An agent that
// tells no content may tell its tool's own result; and what was told before the call ran is
// its content still, if nothing else is at its end.
func (c *toolCall) shows(u *wire.ToolCall, ends bool) string {
	if out := text(u.Content); out != "" {
		return out
	}
	if says(u.RawOutput) && (c.shown == "" || c.raw) {
		c.raw = true
		out := string(u.RawOutput)
		_ = json.Unmarshal(u.RawOutput, &out) // a text is one as it is
		return journal.Cut(out, mostRaw)
	}
	if ends && u.Content == nil && c.shown == "" {
		return c.told.Text
	}
	return ""
}

// unfenced is a command's output without the Markdown in which some agents send it.
func unfenced(text string) string {
	inner, fenced := strings.CutPrefix(text, "```console\n")
	inner, closed := strings.CutSuffix(inner, "\n```")
	if !fenced || !closed {
		return text
	}
	return inner + "\n"
}

// relative is a path as rules have it: below the workspace without it.
func relative(path, workspace string) string {
	if rel, err := filepath.Rel(workspace, path); err == nil && filepath.IsAbs(path) {
		return rel
	}
	return path
}
