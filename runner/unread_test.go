package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// unreadable is a message of steps of which nothing can be run.
const unreadable = "```sh\necho never >> log\n```\n\n```sh effect=none\necho never >> log\n```\n"

// notes gives what the agent has noted in a session.
func (b *bench) notes(id string) (out []string) {
	b.t.Helper()
	for _, e := range storetest.Events(b.t, b.s, id) {
		body, err := e.Decode()
		if err != nil {
			b.t.Fatal(err)
		}
		if m, ok := body.(*journal.MessageCompleted); ok && m.Part == journal.PartNote {
			out = append(out, m.Text.S)
		}
	}
	return out
}

// A steer that can't be read is noted with what is wrong, once. Nothing of it
// runs; the turn goes on, and so does each that continues it.
//
// proves PRO-5 PRO-6
func TestRunner_ASteerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo a >> log", "exit 3", "echo b >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		b.submit(id, unreadable, journal.Steer)
		b.submit(id, steps("echo s >> log"), journal.Steer)
		open(t, gate)
		v := b.untilState(id, journal.StateFailed)
		if !strings.Contains(v.State.Turn.Reason, "exit code 3") {
			t.Errorf("the turn failed of %q, want of its own step", v.State.Turn.Reason)
		}
		if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
			t.Fatal(err)
		}
		b.untilState(id, journal.StateReady)
		if got := strings.Fields(b.file("log")); strings.Join(got, " ") != "a s b" {
			t.Errorf("what ran is %v, want a s b", got)
		}
		notes := b.notes(id)
		if len(notes) != 1 || !strings.Contains(notes[0], "Block 2: effect=none") || !strings.Contains(notes[0], "Nothing of this message was run") {
			t.Errorf("the notes are %q, want one that says what is wrong", notes)
		}
	})
}

// A mission that can't be read fails its turn, and each that continues it, with
// the reason and what to do. A new message is taken, and the session goes on with it.
//
// proves PRO-5 PRO-6
func TestRunner_AMissionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(unreadable)
		for turn := 1; turn <= 2; turn++ {
			v := b.until(id, "the turn has failed", func(v store.Session) bool {
				return v.State.Base == journal.StateFailed && v.State.Turn.Number == turn && v.Claim == nil
			})
			if r := v.State.Turn.Reason; !v.State.Held || !strings.Contains(r, "Block 2: effect=none") || !strings.Contains(r, "Send it anew, corrected") {
				t.Errorf("turn %d: held is %t, the reason %q", turn, v.State.Held, r)
			}
			if turn == 1 {
				if err := s.Continue(t.Context(), b.owner, id, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, d := range []journal.Delivery{journal.Queue, journal.Steer} {
			b.submit(id, steps("echo anew >> log"), d)
			b.until(id, "it went on", func(v store.Session) bool {
				return v.State.Base == journal.StateReady && strings.Count(b.file("log"), "anew") == i+1
			})
		}
		if got := b.file("log"); strings.Contains(got, "never") {
			t.Errorf("something of it ran: %q", got)
		}
	})
}
