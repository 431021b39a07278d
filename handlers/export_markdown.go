package handlers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/views/components"
)

// ExportMarkdown writes the whole session of an owner as one Markdown document:
// front matter, then what it was for and what became of it, then all its entries.
// It has the range of an ExportJSON that was begun at the same moment, and the
// same hash over it. Texts are whole; outputs are bounded to head and tail.
// Code: not_found.
func ExportMarkdown(ctx context.Context, w io.Writer, st *store.Store, ownerID, id string) error {
	walk, err := newWalk(ctx, st, ownerID, id)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if err := walk.writeEvents(ctx, sum, func(*journal.Event) {}); err != nil {
		return err
	}
	d := &document{markdown: markdown{w: bufio.NewWriter(w)}, walk: walk, names: map[string]string{}}
	d.frontMatter(hex.EncodeToString(sum.Sum(nil)))
	for _, section := range []func(context.Context) error{d.mission, d.outcome, d.unknown, d.decisions, d.commands, d.messages, d.entries} {
		if err := errors.Join(section(ctx), d.err); err != nil {
			return err
		}
	}
	return d.w.Flush()
}

// document is one export as Markdown.
type document struct {
	markdown
	*walk
	names map[string]string // of people, by id
}

func (d *document) frontMatter(sum string) {
	state, since := d.one.Execution()
	st := &d.one.State
	d.say("---\nsession: %s\ntitle: %s\nagent: %s\nworkspace: %s\n", quoted(d.one.ID), quoted(st.Title), quoted(st.Agent), quoted(st.Workspace))
	d.say("state: %s\nstate_since: %s\nfirst_entry: %d\nlast_entry: %d\n", quoted(string(state)), timeJSON(since), min(1, d.one.LastSeq), d.one.LastSeq)
	d.say("# Over the bytes of the array \"events\" in the JSON export of the same entries, brackets included.\njournal_sha256: %s\n", sum)
	d.say("generated_at: %s\n---\n\n# Session %s\n\n", timeJSON(d.one.Now), code(st.Title))
	d.say("Blocks and code spans hold data as it was recorded. In them, characters that would act or could not be seen stand as escapes such as `\\x1b`. The JSON export has every byte.\n\n")
}

// mission is the first message.
func (d *document) mission(ctx context.Context) error {
	d.say("## Mission\n\n")
	none := true
	err := d.events(ctx, 0, []journal.Kind{journal.KindPromptAdmitted}, func(ev *journal.Event) (bool, error) {
		body, err := ev.Decode()
		b, ok := body.(*journal.PromptAdmitted)
		if err != nil || !ok {
			return true, nil //nolint:nilerr // it stands among the entries, and verify names it
		}
		text, err := d.text(ctx, b.Text)
		none = false
		d.fence(0, text)
		d.say("\n")
		return false, err
	})
	if none {
		d.say("None. Nothing was asked.\n\n")
	}
	return err
}

// turn is a turn as far as it went.
type turn struct {
	journal.TurnStarted
	seq, at   int64
	ended     *journal.TurnEnded
	end, endT int64
	by        journal.Actor
}

func (d *document) outcome(ctx context.Context) error {
	state, since := d.one.Execution()
	d.say("## Outcome\n\nState: %s since %s, at entry %s.\n\n", code(string(state)), timeJSON(since), components.Number(d.one.LastSeq))
	if b := d.one.State.Blocked; b != nil {
		d.data("It waits for something that is missing", b.Detail)
	}
	d.settings()
	n := 0
	err := folded(ctx, d.walk, folding[*turn]{
		kinds: []journal.Kind{journal.KindTurnStarted, journal.KindTurnEnded},
		about: func(body journal.Body) (string, bool) {
			switch b := body.(type) {
			case *journal.TurnStarted:
				return b.TurnID, true
			case *journal.TurnEnded:
				return b.TurnID, false
			}
			return "", false
		},
		open: func(ev *journal.Event, body journal.Body) *turn {
			return &turn{TurnStarted: *body.(*journal.TurnStarted), seq: ev.Seq, at: ev.Time}
		},
		apply: func(t *turn, ev *journal.Event, body journal.Body) error {
			if b, ok := body.(*journal.TurnEnded); ok {
				t.ended, t.end, t.endT, t.by = b, ev.Seq, ev.Time, ev.Actor
			}
			return nil
		},
		done: func(t *turn) bool { return t.ended != nil },
	}, func(t *turn) error {
		n++
		d.turn(ctx, n, t)
		return d.err
	})
	if n == 0 {
		d.say("No turn was begun.\n\n")
	}
	return err
}

// settings are what the agent is set to, and what is wanted of it.
func (d *document) settings() {
	st := &d.one.State
	for _, o := range st.Options {
		text := o.Label
		if text == "" {
			text = "not told"
		}
		d.data("The agent’s setting "+code(o.Name), text)
	}
	for _, w := range st.Wanted {
		if o := st.Option(w.ID); o == nil || o.Current != w.Value {
			d.data("Wanted from the next message on, of the setting "+code(w.ID), w.Value)
		}
	}
}

func (d *document) turn(ctx context.Context, n int, t *turn) {
	d.say("### Turn %d\n\nBegun at entry %s, %s, by a %s.\n\n", n, components.Number(t.seq), timeJSON(t.at), code(string(t.Cause)))
	if t.ended == nil {
		d.say("It is open.\n\n")
		return
	}
	d.say("Ended at entry %s, %s, after %s, by %s: %s.\n\n", components.Number(t.end), timeJSON(t.endT), components.Took(t.endT-t.at), d.actor(ctx, t.by), code(string(t.ended.Outcome)))
	if t.ended.Reason != "" {
		d.data("Reason", t.ended.Reason)
	}
	if t.ended.Limit != "" {
		d.data("Limit", t.ended.Limit)
	}
}

// unknown lists what was dispatched without a recorded result, resolved or not.
func (d *document) unknown(ctx context.Context) error {
	d.say("## Unknown outcomes\n\n")
	n := 0
	err := d.calls(ctx, func(c *journal.Call) error {
		if c.State != journal.CallIsUnknown {
			return nil
		}
		n++
		d.say("### Unknown outcome %d\n\nCall of the tool %s, proposed at entry %s. It was dispatched %s and no result was recorded.\n\n", n, code(c.Tool), components.Number(c.ProposedSeq), timeJSON(c.Since))
		if err := d.input(ctx, c); err != nil {
			return err
		}
		for _, e := range c.Evidence {
			name := "Evidence (" + code(e.Type) + ")"
			if e.Type == journal.EvidenceExitRecord {
				name += ", the command’s own record, found later"
			}
			d.data(name, e.Text)
		}
		if r := c.Resolution; r != nil {
			d.say("Resolved by %s, %s: %s.\n\n", d.who(ctx, r.By), timeJSON(r.At), code(string(r.Outcome)))
			d.data("What was found", r.Evidence)
		} else {
			d.say("Nobody has said yet what became of it.\n\n")
		}
		return d.err
	})
	if err != nil {
		return err
	}
	m, err := d.unknownAttempts(ctx)
	if n+m == 0 {
		d.say("None. Every operation has a recorded result.\n\n")
	}
	return err
}

func (d *document) unknownAttempts(ctx context.Context) (n int, _ error) {
	kinds := []journal.Kind{journal.KindAttemptUnknown, journal.KindAttemptResolved}
	err := d.events(ctx, 0, kinds, func(ev *journal.Event) (bool, error) {
		body, err := ev.Decode()
		if err != nil {
			return true, nil //nolint:nilerr // it stands among the entries, and verify names it
		}
		n++
		switch b := body.(type) {
		case *journal.AttemptUnknown:
			d.say("Message %s to the agent: entry %s, %s. The agent was lost before it had answered. The message was not sent again.\n\n", code(b.AttemptID), components.Number(ev.Seq), timeJSON(ev.Time))
		case *journal.AttemptResolved:
			d.say("Message %s to the agent: resolved by %s, %s: %s.\n\n", code(b.AttemptID), d.who(ctx, b.By), timeJSON(ev.Time), code(string(b.Outcome)))
		}
		return true, d.err
	})
	return n, err
}

func (d *document) decisions(ctx context.Context) error {
	d.say("## Decisions by people\n\n")
	n := 0
	err := d.requests(ctx, func(r *journal.Request) error {
		n++
		d.say("### Decision %d\n\n%s, asked at entry %s, %s.\n\n", n, code(r.Permission), components.Number(r.AskedSeq), timeJSON(r.AskedAt))
		for _, resource := range r.Resources {
			d.data("For", resource)
		}
		var meta struct {
			Command string `json:"command"`
			Diff    string `json:"diff"`
		}
		_ = json.Unmarshal(r.Metadata, &meta) // what isn't there is empty
		if meta.Command != "" {
			d.data("Command", meta.Command)
		}
		if meta.Diff != "" {
			d.data("Change, or its beginning", meta.Diff)
		}
		switch {
		case r.Reply != "":
			d.say("Answered by %s, %s, after %s: %s.\n\n", d.who(ctx, r.By), timeJSON(r.At), components.Took(r.At-r.AskedAt), code(string(r.Reply)))
			if r.Message != "" {
				d.data("Message", r.Message)
			}
		case r.Ended():
			d.say("It ended without an answer: %s.\n\n", code(r.Reason))
		default:
			d.say("It waits for an answer.\n\n")
		}
		return d.err
	})
	if n == 0 {
		d.say("None. Nothing was asked.\n\n")
	}
	return err
}

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
		return errors.Join(d.input(ctx, c), d.output(ctx, c), d.err)
	})
	if n == 0 {
		d.say("None.\n\n")
	}
	return err
}

// input shows what a call was to do: the command, or its JSON.
func (d *document) input(ctx context.Context, c *journal.Call) error {
	raw := c.Input
	var ref journal.Text
	if json.Unmarshal(raw, &ref) == nil && ref.Blob != "" {
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
		d.fence(0, shell.Command)
	} else {
		d.say("Input:\n\n")
		d.fence(0, string(raw))
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
	d.say("%s:\n\n", name)
	d.fence(0, p.Text)
	d.say("\n")
	for _, f := range p.Facts {
		d.data(code(f.Name), f.Value)
	}
	if p.Raw != "" {
		d.data("What the agent gave its tool", p.Raw)
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

// said is a text of a person or of the agent.
type said struct {
	seq, at int64
	actor   journal.Actor
	what    string // ours
	text    journal.Text
	parts   strings.Builder // of a message that isn't complete
	state   string          // ours
	done    bool
}

func (d *document) messages(ctx context.Context) error {
	d.say("## Messages\n\n")
	n := 0
	err := folded(ctx, d.walk, folding[*said]{
		kinds: []journal.Kind{
			journal.KindPromptAdmitted, journal.KindPromptPromoted, journal.KindPromptWithdrawn, journal.KindMessageDelta, journal.KindMessageCompleted,
		},
		about: aboutMessage, open: newSaid, apply: (*said).apply, done: func(s *said) bool { return s.done },
	}, func(s *said) error {
		n++
		text, err := d.text(ctx, s.text)
		if err != nil {
			return err
		}
		if s.parts.Len() > 0 {
			text = s.parts.String()
		}
		d.say("### Message %d\n\nEntry %s, %s, by %s: %s. %s\n\n", n, components.Number(s.seq), timeJSON(s.at), d.actor(ctx, s.actor), s.what, s.state)
		d.fence(0, text)
		d.say("\n")
		return d.err
	})
	if n == 0 {
		d.say("None.\n\n")
	}
	return err
}

func aboutMessage(body journal.Body) (id string, opens bool) {
	switch b := body.(type) {
	case *journal.PromptAdmitted:
		return b.PromptID, true
	case *journal.PromptPromoted:
		return b.PromptID, false
	case *journal.PromptWithdrawn:
		return b.PromptID, false
	case *journal.MessageDelta:
		return b.MessageID + "/" + string(b.Part), true
	case *journal.MessageCompleted:
		return b.MessageID + "/" + string(b.Part), true
	}
	return "", false
}

func newSaid(ev *journal.Event, body journal.Body) *said {
	s := &said{seq: ev.Seq, at: ev.Time, actor: ev.Actor, what: "a message", state: "It is not complete."}
	if b, ok := body.(*journal.PromptAdmitted); ok {
		s.text, s.state = b.Text, "It waits."
		s.what = "a message for the queue"
		if b.Delivery == journal.Steer {
			s.what = "a message into the turn"
		}
		return s
	}
	_ = s.apply(ev, body) // it refuses nothing
	return s
}

func (s *said) apply(ev *journal.Event, body journal.Body) error {
	switch b := body.(type) {
	case *journal.PromptPromoted:
		s.state, s.done = "Delivered at entry "+components.Number(ev.Seq)+".", true
	case *journal.PromptWithdrawn:
		s.state, s.done = "Withdrawn at entry "+components.Number(ev.Seq)+".", true
	case *journal.MessageDelta:
		if s.done && s.parts.Len() == 0 { // the agent goes on with a message that was whole
			s.parts.WriteString(s.text.S)
		}
		s.parts.WriteString(b.Text.S)
	case *journal.MessageCompleted:
		s.parts.Reset()
		s.what, s.text, s.state, s.done = partWords(b.Part), b.Text, "", true
	}
	return nil
}

func partWords(p journal.Part) string {
	switch p {
	case journal.PartNote:
		return "a note"
	case journal.PartReasoning:
		return "reasoning"
	default:
		return "a message"
	}
}

// entries is the journal itself.
func (d *document) entries(ctx context.Context) error {
	d.say("## Journal\n\nTexts over 32 KiB stand here as a reference to their hash.\n\n")
	return d.events(ctx, 0, nil, func(ev *journal.Event) (bool, error) {
		number := fmt.Sprintf("%d. ", ev.Seq)
		d.say("%s%s, %s, by %s", number, code(string(ev.Kind)), timeJSON(ev.Time), d.actor(ctx, ev.Actor))
		if ev.ExecutionID != "" {
			d.say(", execution %s", code(ev.ExecutionID))
		}
		d.say("\n\n")
		d.fence(len(number), string(ev.Data))
		d.say("\n")
		return true, d.err
	})
}

func (d *document) actor(ctx context.Context, a journal.Actor) string {
	switch a.Type {
	case journal.ActorUser:
		return d.who(ctx, a.ID)
	case journal.ActorAgent:
		return "the agent"
	case journal.ActorServer:
		return "the server"
	}
	return code(string(a.Type))
}

// who names a person, by address where it can be found.
func (d *document) who(ctx context.Context, id string) string {
	if name, ok := d.names[id]; ok {
		return name
	}
	name := code(id)
	if u, err := d.st.UserByID(ctx, id); err == nil { // a disabled user is known by the id alone
		name = code(u.Email) + " (" + code(id) + ")"
	} else if !journal.Is(err, journal.NotFound) {
		d.err = errors.Join(d.err, err)
	}
	d.names[id] = name
	return name
}
