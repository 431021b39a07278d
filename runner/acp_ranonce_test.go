package runner_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// A call that was let run, and of which its agent asks once more whether it may, is never
// said not to have run, whatever becomes of that request: it ends as its agent says, or
// nobody knows how.
//
// proves CAL-4 CAL-7
func TestACP_RanAndAsksOnceMore(t *testing.T) {
	t.Parallel()
	const ran = `hear; perm 7 t1 'rm a' "$both"; hear; out t1 in_progress 'removed a'; `
	const again, taken = `perm 8 t1 'rm a' "$both"; `, `echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":8}}'; hear; `
	for name, c := range map[string]struct {
		does, want string
		reply      journal.Reply // to what it asks then
	}{
		"takes it back":           {again + `read -r x < gate; ` + taken, "unknown", ""},
		"takes it back, and says": {again + `read -r x < gate; ` + taken + `out t1 completed 'removed b'; `, "succeeded", ""},
		"can't be allowed":        {`perm 8 t1 'rm a' "$always"; hear; `, "unknown", ""},
		"can't be, and fails":     {`perm 8 t1 'rm a' "$always"; hear; news t1 failed; `, "failed", ""},
		"twins":                   {again + again + `hear; hear; `, "unknown", ""},
		"ends its turn":           {again + `read -r x < gate; `, "unknown", ""},
		"goes on":                 {again + `read -r x < gate; out t1 in_progress 'removed b'; `, "unknown", ""},
		"dies":                    {again + `read -r x < gate; kill -9 $$; `, "unknown", ""},
		"is rejected":             {again + `hear; `, "unknown", journal.ReplyReject},
		"is rejected, and fails":  {again + `hear; news t1 failed; `, "failed", journal.ReplyReject},
		"is allowed":              {again + `hear; news t1 completed; `, "succeeded", journal.ReplyOnce},
		"asks a third time":       {again + `hear; perm 9 t1 'rm a' "$both"; hear; news t1 completed; `, "succeeded", journal.ReplyReject},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+`always='[{"optionId":"yes","kind":"allow_always","name":"Yes"}]'; `+ran+c.does+`stop 3; hear; stop 6; stop 7; read -r l`)
				b := setup(t, s, with, brief)
				gate := b.fifo("gate")
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				b.allowAny(id)
				switch {
				case c.reply == journal.ReplyReject:
					b.untilKind(id, journal.KindPermissionAsked, 2)
					b.decide(b.pending(id)[0].ID, store.Decision{Reply: c.reply, Message: "not twice"})
				case c.reply != "":
					b.untilKind(id, journal.KindPermissionAsked, 2)
					b.allowAny(id)
				case strings.Contains(c.does, "gate"):
					b.untilKind(id, journal.KindPermissionAsked, 2)
					open(t, gate)
				}
				if strings.Contains(c.does, "perm 9") {
					b.untilKind(id, journal.KindPermissionAsked, 3)
					b.allowAny(id)
				}
				b.until(id, "it is over", func(v store.Session) bool {
					return v.Claim == nil && (v.State.Unknowns() > 0 || v.State.Base == journal.StateReady)
				})
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 1 || string(calls[0].State) != c.want {
					t.Errorf("%s, %q, %v\n%s", calls[0].State, calls[0].Reason, err, b.dump(id))
				}
				if len(b.pending(id)) > 0 {
					t.Error("somebody is still asked")
				}
				if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
					t.Errorf("verify says %+v, %v", report.Checks, err)
				}
			})
		})
	}
}

// What a person says when they reject what an agent asks once more of a call that runs, the
// agent is told as of any other.
//
// proves PER-2 CAL-4
func TestACP_IsToldWhatWasRejectedOfWhatRan(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		heard, with := scripted(t, tells+`hear; perm 7 t1 'rm a' "$both"; hear; perm 8 t1 'rm b' "$both"; hear; news t1 failed; stop 3; hear; stop 6; stop 7; read -r l`)
		b := setup(t, s, with, brief)
		b.start()
		id := b.session("Do it", byFake, asking)
		b.untilKind(id, journal.KindPermissionAsked, 1)
		b.allowAny(id)
		b.untilKind(id, journal.KindPermissionAsked, 2)
		b.decide(b.pending(id)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "not that one"})
		b.untilState(id, journal.StateReady)
		if got, err := os.ReadFile(heard); err != nil || strings.Count(string(got), "not that one") != 1 {
			t.Errorf("it heard %s, %v", got, err)
		}
	})
}

// An agent that says that its call runs while somebody is asked whether it may is believed
// that much: then nobody knows that it did not run.
//
// proves CAL-4 CAL-7
func TestACP_RunsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ does, want string }{
		"takes it back": {`echo '{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}'; hear; `, "unknown"},
		"fails":         {`news t1 failed; `, "failed"},
		"ends its turn": {``, "unknown"},
		"dies":          {`kill -9 $$; `, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, tells+`hear; perm 7 t1 'rm a' "$both"; read -r x < gate; out t1 in_progress 'removed a'; text and; `+c.does+`stop 3; read -r l`)
				b := setup(t, s, with, brief)
				gate := b.fifo("gate")
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				open(t, gate)
				b.until(id, "it is over", func(v store.Session) bool {
					return v.Claim == nil && (v.State.Unknowns() > 0 || v.State.Base == journal.StateReady)
				})
				if got := b.callsOf(id); !strings.Contains(got, c.want+" by agent") {
					t.Errorf("calls %s\n%s", got, b.dump(id))
				}
			})
		})
	}
}

func (b *bench) allowAny(id string) {
	b.t.Helper()
	r := b.pending(id)[0]
	b.decide(r.ID, store.Decision{Reply: journal.ReplyOnce, Digest: r.Digest})
}
