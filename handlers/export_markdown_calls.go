package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast/journal"
	"holdfast/views/components"
)

// shownOutput is how much of a call's output stands at each end, in bytes.
const shownOutput = 4 << 10

func (d *document) commands(ctx context.Context) error {
	d.say("## Commands run\n\n")
	n := 0
	err := d.calls(ctx, func(c *journal.Call) error {
		n++
		d.say("### Command %d\n\n", n)
		d.say("Tool %s, proposed at entry %s, of class %s: %s.", code(c.Tool), components.Number(c.ProposedSeq), code(string(c.Effect)), code(string(c.State)))
		if c.ExitCode != nil {
			d.say(" Exit code %d.", *c.ExitCode)
		}
		if c.Signal != "" {
			d.say(" Ended by %s.", code(c.Signal))
		}
		if c.DispatchedAt > 0 {
			d.say(" Dispatched %s", timeJSON(c.DispatchedAt))
			if c.RanMS != nil {
				d.say(", for %s", components.Took(*c.RanMS))
			}
			d.say(".")
		}
		if c.AdoptedAt > 0 {
			d.say(" The server was restarted meanwhile; it was found still running at %s", timeJSON(c.AdoptedAt))
			if c.State == journal.CallIsUnknown {
				d.say(". It was lost later.")
			} else {
				d.say(", and nothing of it was interrupted up to then.")
			}
		}
		if c.Reason == journal.ReasonNotStarted {
			d.say(" It never began: the server stopped, or was lost, between its dispatch and its start.")
		}
		d.say("\n\n")
		if c.Reason != "" {
			d.data("Reason", c.Reason)
		}
		if by := c.AllowedBy; by != nil {
			d.data("Allowed by "+code(string(by.Type)), by.Text)
		}
		return errors.Join(d.input(ctx, c, c.Input), d.later(ctx, c), d.output(ctx, c), d.err)
	})
	if n == 0 {
		d.say("None.\n\n")
	}
	return err
}

// later shows what an agent said of its call after it was let run.
func (d *document) later(ctx context.Context, c *journal.Call) error {
	if c.Later == nil {
		return nil
	}
	d.say("After it was let run as it stands above, the agent said something else of it. What it really did can’t be told from either.\n\n")
	return d.input(ctx, c, c.Later)
}

// input shows what a call was to do: the command, or its JSON.
func (d *document) input(ctx context.Context, c *journal.Call, raw json.RawMessage) error {
	if ref, elsewhere := journal.InputBlob(raw, ""); elsewhere {
		// A tool may take an input that looks like a reference; then there is no such blob.
		switch text, err := d.text(ctx, ref); {
		case err == nil:
			raw = json.RawMessage(text)
		case !journal.Is(err, journal.NotFound):
			return err
		}
	}
	if c.AttemptID != "" && d.agentInput(raw) {
		return nil
	}
	var shell struct {
		Command string `json:"command"`
		Shell   string `json:"shell"`
	}
	if json.Unmarshal(raw, &shell) == nil && shell.Command != "" {
		d.say("Command (%s):\n\n", code(shell.Shell))
		d.exactly(shell.Command)
	} else {
		d.say("Input:\n\n")
		d.exactly(string(raw))
	}
	d.say("\n")
	return nil
}

// agentInput shows a call of the agent's own: what it does, then what else was said
// of it. False: it has another form.
func (d *document) agentInput(raw json.RawMessage) bool {
	p := components.CallPayload(&journal.Call{AttemptID: "att", Input: raw})
	if !p.Agents {
		return false
	}
	if p.Name != "" && p.Name != p.Text {
		d.data("What it does", p.Name)
	}
	name := "In the agent’s words"
	switch {
	case p.Diff != nil:
		name = "Change"
	case p.Name == "":
		name = "Command"
	}
	if p.Runs != "" {
		d.say("Command:\n\n")
		d.exactly(p.Runs)
		d.say("\n")
	}
	d.say("%s:\n\n", name)
	d.exactly(p.Text)
	d.say("\n")
	for _, f := range p.Facts {
		d.exactData(code(f.Name), f.Value)
	}
	for _, f := range p.Said {
		d.exactData("The agent says, "+code(f.Name), f.Value)
	}
	if p.Raw != "" {
		d.exactData("What the agent gave its tool", p.Raw)
	}
	return true
}

// output shows the ends of what a call has put out.
func (d *document) output(ctx context.Context, c *journal.Call) error {
	if c.OutputBytes == 0 {
		return nil
	}
	d.say("Output, %s", components.Bytes(c.OutputBytes))
	if c.DroppedBytes > 0 {
		d.say(", of whose middle %s were not kept", components.Bytes(c.DroppedBytes))
	}
	if c.OutputBytes <= 2*shownOutput {
		d.say(":\n\n")
		return d.piece(ctx, c, 0, c.OutputBytes)
	}
	d.say(". It begins:\n\n")
	if err := d.piece(ctx, c, 0, shownOutput); err != nil {
		return err
	}
	d.say("And it ends:\n\n")
	return d.piece(ctx, c, c.OutputBytes-shownOutput, shownOutput)
}

// piece shows n bytes of an output from an offset on, however many gaps they have.
func (d *document) piece(ctx context.Context, c *journal.Call, from, n int64) error {
	var text strings.Builder
	for at, end := from, from+n; at < end; {
		out, err := d.st.CallOutput(ctx, d.owner, c.ID, at, int(end-at))
		if err != nil {
			return err
		}
		if len(out.Data) == 0 {
			break
		}
		text.Write(out.Data)
		if gap := out.Next - at - int64(len(out.Data)); gap > 0 && out.Next < end {
			fmt.Fprintf(&text, "\n[%s were not kept]\n", components.Bytes(gap))
		}
		at = out.Next
	}
	d.fence(0, text.String())
	d.say("\n")
	return nil
}
