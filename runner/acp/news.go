package acp

import (
	"context"
	"fmt"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// Told to an agent whose turn goes on without a new prompt.
const goOn = "Go on with what was asked."

// news is what a prompt tells the agent. The journal has the people's prompts; of what
// the server itself says there is a note for each block, in their order: with the
// prompts they are all that the agent is told.
type news struct {
	upTo   int64 // the prompts up to this seq are told with it, or were
	blocks []wire.Block
	notes  []journal.Draft
}

// say adds a text of the server's own.
func (n *news) say(t *runner.Turn, told journal.Told, text string) {
	text = t.Masked(text) // the agent gets what the journal will have
	n.blocks = append(n.blocks, wire.TextBlock{Text: text})
	n.notes = append(n.notes, runner.Seen(&journal.MessageCompleted{
		MessageID: runner.NewID("msg"), Role: journal.RoleServer, Part: journal.PartNote, Text: journal.T(text), Told: told,
	}))
}

// news is what the agent hasn't been told: what people found out about what was
// unknown (CAL-6) and said about what they rejected (PER-2), and their prompts, those
// first whose turns ended before it was told of them. One that starts anew is told a
// summary first, which has all but these prompts.
func (s *session) news(ctx context.Context) (*news, error) {
	n, prompted := &news{}, false
	untold, err := s.t.News(ctx)
	if err != nil {
		return nil, err
	}
	if s.t.State().AnewSeq > 0 {
		text, err := s.t.Summary(ctx)
		if err != nil {
			return nil, err
		}
		n.say(s.t, journal.ToldSummary, text)
	} else {
		for _, c := range untold.Verdicts {
			text := fmt.Sprintf("The outcome of %q was unknown; a person says: %s. %s", c.Title(), c.Resolution.Outcome.Words(), c.Resolution.Evidence)
			n.say(s.t, journal.ToldOutcome, share(text, len(untold.Verdicts))+"\n")
		}
		if said := feedback(untold.Rejected); said != "" {
			prompted = true
			n.say(s.t, journal.ToldRejection, said)
		}
	}
	prompts, upTo, err := s.fitting(untold.Older)
	if err != nil {
		return nil, err
	}
	n.upTo = upTo
	if older := min(len(untold.Older), len(prompts)); older > 0 { // the chain's own follow: whoever was told of them was told of these
		n.say(s.t, journal.ToldLate, late(older))
	}
	for _, p := range prompts {
		prompted = true
		n.blocks = append(n.blocks, wire.TextBlock{Text: p.Text})
	}
	if !prompted {
		n.say(s.t, journal.ToldGoOn, goOn)
	}
	return n, nil
}

// Bounds of what goes into one prompt, in bytes: some agents take no line of more than
// 10 MB, and none may be longer than shim.MaxFrame.
const (
	mostPrompt = 8 << 20 // of the messages of people, as they are sent
	mostWords  = 1 << 20 // of what they said of calls
)

// fitting gives the prompts that are told next, older ones first: as many as one prompt
// has room for, and one at least. What is left over is told with the next, of the same
// turn (ADM-1). upTo is the seq up to which all are told then.
func (s *session) fitting(older []journal.Promoted) (prompts []journal.Promoted, upTo int64, err error) {
	room := s.a.o.MaxPrompt
	for _, p := range append(older, s.t.Prompts()...) {
		if p.Seq <= s.t.Told() {
			continue
		}
		encoded, err := journal.Encode(p.Text)
		if err != nil {
			return nil, 0, fmt.Errorf("encode a prompt: %w", err)
		}
		if room -= len(encoded); room < 0 && len(prompts) > 0 {
			return prompts, prompts[len(prompts)-1].Seq, nil
		}
		prompts = append(prompts, p)
	}
	return prompts, s.t.Seq(), nil
}

// share is a text that is one of n, so short that all of them have room.
func share(text string, n int) string { return journal.Cut(text, mostWords/n) }

// late tells the agent why messages come only now.
func late(n int) string {
	if n == 1 {
		return "The next message is older than what follows it. You were not told of it, since its turn ended before. Where they differ, the newer one holds.\n"
	}
	return fmt.Sprintf("The next %d messages are older than what follows them. You were not told of them, since their turns ended before. Where they differ, the newer ones hold.\n", n)
}

// feedback tells the agent what people said about what they rejected (PER-2): the
// answer to its request has no place for that.
func feedback(calls []*journal.Call) string {
	text := ""
	for _, c := range calls {
		text += share(fmt.Sprintf("I rejected %q: %s", c.Title(), c.Feedback), len(calls)) + "\n"
	}
	return text
}
