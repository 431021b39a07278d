package handlers

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	d := &document{markdown: markdown{w: bufio.NewWriter(w), clean: walk.clean}, walk: walk, names: map[string]string{}}
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
	if t.ended.Done {
		d.say("It was done when the stop took effect.\n\n")
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
		if err := d.input(ctx, c, c.Input); err != nil {
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
	kinds := []journal.Kind{journal.KindAttemptUnknown, journal.KindAttemptResolved, journal.KindAgentLost, journal.KindAgentEnded}
	lost := map[string]bool{}
	err := d.events(ctx, 0, kinds, func(ev *journal.Event) (bool, error) {
		body, err := ev.Decode()
		if err != nil {
			return true, nil //nolint:nilerr // it stands among the entries, and verify names it
		}
		switch b := body.(type) {
		case *journal.AgentLost:
			n++
			lost[b.ProcessID] = true
			d.say("The agent's process %s: entry %s, %s. It ran on %s as pid %d since %s, and may still be running there: no server there answered.\n\n",
				code(b.ProcessID), components.Number(ev.Seq), timeJSON(ev.Time), code(cmp.Or(b.Host, "another host")), b.PID, timeJSON(b.Since))
		case *journal.AgentEnded:
			if lost[b.ProcessID] {
				d.say("The agent's process %s: its end was seen later, entry %s, %s.\n\n", code(b.ProcessID), components.Number(ev.Seq), timeJSON(ev.Time))
			}
		case *journal.AttemptUnknown:
			n++
			d.say("Message %s to the agent: entry %s, %s. The agent was lost before it had answered. The message was not sent again.\n\n", code(b.AttemptID), components.Number(ev.Seq), timeJSON(ev.Time))
		case *journal.AttemptResolved:
			n++
			d.say("Message %s to the agent: resolved by %s, %s: %s.\n\n", code(b.AttemptID), d.who(ctx, b.By), timeJSON(ev.Time), code(string(b.Outcome)))
			if b.Evidence != "" {
				d.data("What was found", b.Evidence)
			}
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
			d.exactData("For", resource)
		}
		if err := d.asked(ctx, r); err != nil {
			return err
		}
		switch {
		case r.Reply != "":
			d.say("Answered by %s, %s, after %s: %s.\n\n", d.who(ctx, r.By), timeJSON(r.At), components.Took(r.At-r.AskedAt), code(string(r.Reply)))
			if r.Message != "" {
				d.data("Message", r.Message)
			}
		case r.Ended():
			d.say("It ended without an answer: %s.\n\n", code(journal.WhyEnded(r.Reason)))
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

// asked shows what was decided on: all that the agent had told of its call when it was
// asked, or, where that isn't at hand, what the request itself says.
func (d *document) asked(ctx context.Context, r *journal.Request) error {
	page, err := d.st.Request(ctx, d.owner, r.ID)
	if err != nil && !journal.Is(err, journal.NotFound) { // a damaged journal can be exported
		return err
	}
	if c := page.Asked; c != nil {
		raw, err := d.walk.clean().JSON(c.Input)
		if err != nil {
			return err
		}
		return d.input(ctx, c, raw)
	}
	var meta struct {
		Command string `json:"command"`
		Diff    string `json:"diff"`
	}
	_ = json.Unmarshal(r.Metadata, &meta) // what isn't there is empty
	if meta.Command != "" {
		d.exactData("Command", meta.Command)
	}
	if meta.Diff != "" {
		d.exactData("Change, or its beginning", meta.Diff)
	}
	return nil
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
