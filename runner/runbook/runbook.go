package runbook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner"
)

// Name is what sessions name this agent by.
const Name = "runbook"

// Agent runs missions that are written as Markdown.
type Agent struct{}

// Name is runbook.
func (Agent) Name() string { return Name }

// Kind is builtin.
func (Agent) Kind() string { return "builtin" }

// Steer is taken between two steps.
func (Agent) Steer() runner.SteerMode { return runner.SteerAtBoundary }

const example = "This message has no step to run. Write each step as a fenced block marked sh, for example:\n\n```sh\necho hello\n```"

// sendAnew stands behind what is wrong with a mission: its text stays as it is, so
// that no continuing can help.
const sendAnew = "Nothing of this message was run, and continuing would only read it again. Send it anew, corrected: the session goes on with that."

// Run goes through the steps from the top. What has an outcome is passed over.
func (Agent) Run(ctx context.Context, t *runner.Turn) (runner.Result, error) {
	read := reading{}
	for {
		m, err := arrange(t, read)
		if err != nil {
			return runner.Result{Failed: sentence(err) + " " + sendAnew}, nil
		}
		if len(m.blocks) == 0 {
			return runner.Result{Failed: example}, nil
		}
		if err := m.notes(ctx); err != nil {
			return runner.Result{}, err
		}
		m.show()
		next, failed := m.next()
		if next < 0 || failed {
			return m.result(next, failed), nil
		}
		if err := m.run(ctx, next); err != nil {
			return runner.Result{}, err
		}
	}
}

// mission is the arranged list of steps, with what is known of each.
type mission struct {
	t        *runner.Turn
	blocks   []block
	keys     []string        // under which each block stands now (…#2 after it did not happen)
	calls    []*journal.Call // the call under that key, or nil
	resolved []*journal.Call // unknown calls with a person's word, to be told
	remarks  []remark        // on steers of which nothing runs
}

// remark is what the agent has to say of something, once.
type remark struct{ subject, text string }

// reading keeps what each prompt is, by its id: a text that was read once is the
// same at the next pass.
type reading map[string]read

type read struct {
	blocks []block
	err    error // why it can't be run
}

func (r reading) blocks(p journal.Promoted) ([]block, error) {
	one, ok := r[p.ID]
	if !ok {
		one.blocks, one.err = parse(p.Text)
		for i := range one.blocks {
			b := &one.blocks[i]
			b.Key, b.PromptID, b.Seq = fmt.Sprintf("%s/%d", p.ID, i+1), p.ID, p.Seq
		}
		r[p.ID] = one
	}
	if one.err != nil {
		return nil, one.err
	}
	return slices.Clone(one.blocks), nil
}

// sentence is what is wrong with a text, with its full stop.
func sentence(err error) string { return strings.TrimRight(err.Error(), ".") + "." }

// arrange puts the steps of all prompts in order: those of a steer go before the
// first step that had not begun when it was promoted. It is a function of the
// journal, so every run finds the same. A mission that can't be read is an error;
// a steer that can't be is remarked on and runs nothing, since it stays in the
// chain, and would fail each *continue* anew.
func arrange(t *runner.Turn, read reading) (*mission, error) {
	m := &mission{t: t}
	var opened int64 // where the prompt that opened the chain was promoted, unless it is one of several steers
	for i, p := range t.Prompts() {
		if i == 0 && p.Delivery != journal.Steer {
			opened = p.Seq
		}
		blocks, err := read.blocks(p)
		switch {
		case err != nil && i == 0:
			return nil, err
		case err != nil:
			m.remarks = append(m.remarks, remark{p.ID, "Nothing of this message was run: " + sentence(err) + " The turn goes on without it. To have it run, send it again, corrected."})
		case len(blocks) == 0 && p.Delivery == journal.Steer:
			m.remarks = append(m.remarks, remark{p.ID, "Noted, nothing to run in it: " + journal.Cut(p.Text, 4000)})
		}
		at := place(t, m.blocks, p.Seq, opened)
		m.blocks = slices.Insert(m.blocks, at, blocks...)
	}
	for _, b := range m.blocks {
		m.follow(b.Key)
	}
	return m, nil
}

func begunBefore(t *runner.Turn, key string, seq int64) bool {
	c := t.CallByKey(key)
	return c != nil && c.ProposedSeq < seq
}

// place finds where the steps of a steer that was promoted at seq go: before the
// first that had not begun then, but after those of steers promoted at the same
// boundary, so that several keep the order of their admission.
func place(t *runner.Turn, blocks []block, seq, opened int64) int {
	for i, b := range blocks {
		together := b.Seq != opened && !t.ProposedBetween(b.Seq, seq)
		if !begunBefore(t, b.Key, seq) && !together {
			return i
		}
	}
	return len(blocks)
}

// follow finds where a block stands. It is proposed again after did_not_happen,
// when a crash came between its dispatch and its start, and when its call was
// cancelled, or could not be started, in an earlier turn: nothing of it can be
// repeated, and the person continues the unfinished turn.
func (m *mission) follow(key string) {
	for n := 2; ; n++ {
		c := m.t.CallByKey(key)
		if c != nil && c.State == journal.CallIsUnknown && c.Resolution != nil {
			m.resolved = append(m.resolved, c)
		}
		if again(c, m.t.ID()) {
			key = fmt.Sprintf("%s#%d", base(key), n)
			continue
		}
		m.keys = append(m.keys, key)
		m.calls = append(m.calls, c)
		return
	}
}

func again(c *journal.Call, turn string) bool {
	switch {
	case c == nil:
		return false
	case c.State == journal.CallIsUnknown:
		return c.Resolution != nil && c.Resolution.Outcome == journal.DidNotHappen
	}
	if c.NeverRan() && c.N > 0 { // it was dispatched, and its record says that it never began
		return true
	}
	return (c.State == journal.CallCancelled || c.State == journal.CallFailed) && c.N == 0 && c.TurnID != turn
}

// unstarted reports that a call has failed without ever running: a full disk, or
// a shell that isn't there, is no outcome of the step.
func unstarted(c *journal.Call) bool { return c.State == journal.CallFailed && c.N == 0 }

func base(key string) string {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '#' {
			return key[:i]
		}
	}
	return key
}

// notes records steers of which nothing runs, and tells what people found out.
func (m *mission) notes(ctx context.Context) error {
	for _, r := range m.remarks {
		if err := m.t.Note(ctx, r.subject, r.text); err != nil {
			return err
		}
	}
	for _, c := range m.resolved {
		i := slices.IndexFunc(m.blocks, func(b block) bool { return b.Key == base(c.Key) })
		if err := m.t.Note(ctx, c.ID, told(m.blocks[i].Name, c.Resolution)); err != nil {
			return err
		}
	}
	return nil
}

// told says a resolution to the agent in plain words (CAL-6).
func told(step string, r *journal.Resolution) string {
	s := map[journal.Verdict]string{
		journal.Happened:     "The outcome of step %q was unknown. A person found that it happened. It is not run again.",
		journal.DidNotHappen: "The outcome of step %q was unknown. A person found that it did not happen. It is proposed again, and asks first.",
		journal.InPart:       "The outcome of step %q was unknown. A person found that it happened in part. It is not run again.",
		journal.CannotTell:   "The outcome of step %q was unknown, and a person could not tell what became of it. It is not run again.",
	}[r.Outcome]
	s = fmt.Sprintf(s, step)
	if r.Evidence != "" {
		s += " Evidence: " + r.Evidence
	}
	return s
}

// next finds the step to run, or -1; failed says that the step at that place
// has failed in this turn and stops it. What ended in a turn that this one
// continues never ends this one.
func (m *mission) next() (i int, failed bool) {
	for i, c := range m.calls {
		switch {
		case c == nil || c.Open():
			return i, false
		case bad(c) && c.TurnID == m.t.ID() && !m.blocks[i].Continue:
			return i, true
		}
	}
	return -1, false
}

func bad(c *journal.Call) bool {
	return c.State == journal.CallFailed || c.State == journal.CallIsRefused || c.State == journal.CallCancelled
}

func (m *mission) result(at int, failed bool) runner.Result {
	if !failed {
		return runner.Result{}
	}
	then := "Continue goes on after it."
	if unstarted(m.calls[at]) {
		then = "Nothing of it has run. Continue tries it again."
	}
	return runner.Result{Failed: fmt.Sprintf("Step %d of %d (%s) %s. %s", at+1, len(m.blocks), m.blocks[at].Name, how(m.calls[at]), then)}
}

func how(c *journal.Call) string {
	switch {
	case c.State == journal.CallIsRefused && c.Feedback != "":
		return "was refused: " + strings.TrimRight(journal.Cut(c.Feedback, 500), ". \n")
	case c.State == journal.CallIsRefused:
		return "was refused: " + c.Reason
	case c.State == journal.CallCancelled:
		return "was cancelled"
	case strings.HasPrefix(c.Reason, "timeout"): // what could not be ended may stand behind it
		return "took longer than its time limit and was ended"
	case c.Signal != "":
		return "was ended by " + c.Signal
	case c.ExitCode != nil:
		return fmt.Sprintf("failed with exit code %d", *c.ExitCode)
	}
	return "failed: " + c.Reason
}

// run takes the step at a place as far as it goes. A step that hasn't begun
// begins at a boundary, which may put others before it.
func (m *mission) run(ctx context.Context, i int) error {
	b := m.blocks[i]
	if m.calls[i] == nil {
		known := len(m.t.Prompts())
		if err := m.t.Boundary(ctx); err != nil {
			return err
		}
		if len(m.t.Prompts()) != known {
			return nil
		}
		m.mark(i, journal.PlanRunning)
		if err := m.t.Begin(ctx, journal.Step{Key: m.keys[i], Name: b.Name, Index: i + 1, Of: len(m.blocks)}); err != nil {
			return err
		}
	}
	m.mark(i, journal.PlanRunning)
	_, err := m.t.Call(ctx, runner.CallIntent{
		Key: m.keys[i], Effect: b.Effect,
		Input: runner.Shell{Command: b.Script, Shell: b.Shell, TimeoutS: int64(b.Timeout / time.Second)},
	})
	if errors.Is(err, runner.ErrParked) {
		m.mark(i, journal.PlanWaiting)
	}
	return err
}

// show sets the plan to what is known.
func (m *mission) show() { m.mark(-1, "") }

func (m *mission) mark(at int, state journal.PlanState) {
	plan := make([]journal.PlanItem, 0, len(m.blocks))
	for i, b := range m.blocks {
		item := journal.PlanItem{Key: b.Key, Title: b.Name, State: planState(m.calls[i])}
		if i == at {
			item.State = state
		}
		if c := m.calls[i]; item.State == journal.PlanUnknown && c.Resolution != nil {
			item.Found = c.Resolution.Outcome
		}
		plan = append(plan, item)
	}
	m.t.SetPlan(plan)
}

func planState(c *journal.Call) journal.PlanState {
	switch {
	case c == nil:
		return journal.PlanPending
	case c.State == journal.CallSucceeded:
		return journal.PlanDone
	case c.State == journal.CallIsWaiting:
		return journal.PlanWaiting
	case c.State == journal.CallCancelled && c.NeverRan(), c.State == journal.CallIsRefused:
		return journal.PlanSkipped
	case c.State == journal.CallCancelled, c.State == journal.CallFailed:
		return journal.PlanFailed
	case c.State == journal.CallIsUnknown && c.Resolution != nil && c.Resolution.Outcome == journal.Happened:
		return journal.PlanDone
	case c.State == journal.CallIsUnknown:
		return journal.PlanUnknown
	}
	return journal.PlanRunning
}
