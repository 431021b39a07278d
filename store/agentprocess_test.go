package store_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// agentRun is a run whose agent's process has an attempt in flight, and in it a call
// that runs, one that waits for an answer, and one that only reads.
type agentRun struct {
	*storetest.Run
	process, attempt, runs, waits, reads, request string
}

func mustAgentRun(t testing.TB, s *store.Store) *agentRun {
	t.Helper()
	r := &agentRun{Run: storetest.MustRun(t, s, "w"), process: store.NewID("prc"), attempt: store.NewID("att"), request: store.NewID("per")}
	must(t, r.tell(t, s, store.AgentIO{Begins: r.Claim.StateFolderID, Frames: [][]byte{[]byte("one\n")}},
		&journal.AgentStarted{ProcessID: r.process, StateFolderID: r.Claim.StateFolderID}))
	_, err := s.Append(t.Context(), r.Claim, store.Append{
		Drafts: storetest.Drafts(&journal.AttemptPrepared{AttemptID: r.attempt, TurnID: r.Turn}, &journal.AttemptDispatched{AttemptID: r.attempt, ProcessID: r.process, Request: 2}),
		Phase:  journal.PhaseUncertain,
		Agent:  &store.AgentIO{ProcessID: r.process, Sent: 1, Frames: [][]byte{[]byte("two\n")}},
	})
	must(t, err)
	r.runs, r.waits, r.reads = r.own(t, s, journal.EffectEffect), r.own(t, s, journal.EffectEffect), r.own(t, s, journal.EffectRead)
	storetest.MustAppend(t, s, r.Claim, "", announced(r.runs), storetest.Ask(r.request, r.waits), announced(r.reads))
	return r
}

// own is a call of the agent's own.
func (r *agentRun) own(t testing.TB, s *store.Store, effect journal.Effect) string {
	t.Helper()
	id := store.NewID("call")
	c := r.Propose(id, effect)
	c.AttemptID = &r.attempt
	storetest.MustAppend(t, s, r.Claim, "", c)
	return id
}

func announced(call string) *journal.CallDispatched {
	return &journal.CallDispatched{CallID: call, N: 1, AllowedBy: journal.AllowedBy{Type: journal.AllowedByAgent, Text: "the agent asked nobody"}}
}

func (r *agentRun) tell(t testing.TB, s *store.Store, io store.AgentIO, bodies ...journal.Body) error {
	t.Helper()
	io.ProcessID = r.process
	_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(bodies...), Agent: &io})
	return err
}

// What was read of an agent, what was made of it and what the agent is told are one
// commit: each line is journalled once, and each frame is kept until it was given.
//
// proves CAL-5 JRN-5 LEA-4
func TestAgentProcess_ReadAndToldInOneCommit(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		r := mustAgentRun(t, s)
		raw := db.SQL(t)
		said := &journal.MessageDelta{MessageID: "msg_1", Role: "agent", Part: journal.PartText, Text: journal.T("hi")}
		must(t, r.tell(t, s, store.AgentIO{ReadTo: 40, Skip: 7, Sent: 2, Asks: []store.AgentAsk{{N: 1, CallID: r.waits, Request: "{}"}}}, said))
		before := db.RowCounts(t, raw)
		for name, io := range map[string]store.AgentIO{
			"read before":      {ReadTo: 39, Sent: 2},
			"skipped less":     {ReadTo: 40, Skip: 6, Sent: 2},
			"told before":      {ReadTo: 41, Sent: 1, Frames: [][]byte{[]byte("again\n")}},
			"told what is not": {ReadTo: 41, Sent: 3},
		} {
			err := r.tell(t, s, io, said)
			if err == nil {
				t.Errorf("%s: it was taken", name)
			}
			storetest.WantSlug(t, err, "agent-state")
		}
		wantSame(t, before, db.RowCounts(t, raw))
		must(t, r.tell(t, s, store.AgentIO{ReadTo: 40, Skip: 9, Sent: 2, Frames: [][]byte{[]byte("three\n")}, Answered: []int64{1}, Logged: 1}))
		p, err := s.AgentProcess(t.Context(), r.process)
		must(t, err)
		if p.ReadTo != 40 || p.Skip != 9 || p.Sent != 3 || len(p.Asks) != 0 || len(p.Frames) != 2 || string(p.Frames[0].Data) != "two\n" || p.Frames[1].N != 3 {
			t.Errorf("%+v", p)
		}
		if got, whole, err := s.Streamed(t.Context(), r.Session, "msg_1"); err != nil || got != "hi" || whole {
			t.Errorf("streamed %q, %v, %v", got, whole, err)
		}
		_, err = s.AgentProcess(t.Context(), "prc_none")
		storetest.WantCode(t, err, journal.NotFound)
	})
}

// Telling without a fact may be repeated when its answer was lost.
//
// proves COO-10
func TestAgentProcess_ToldTwiceIsToldOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAgentRun(t, s)
		a := store.Append{Agent: &store.AgentIO{ProcessID: r.process, Sent: 2, Frames: [][]byte{[]byte("three\n")}}}
		for range 2 {
			_, err := s.Append(t.Context(), r.Claim, a)
			must(t, err)
			a.Retried = true
		}
		p, err := s.AgentProcess(t.Context(), r.process)
		must(t, err)
		if p.Sent != 3 || len(p.Frames) != 3 {
			t.Errorf("%+v", p)
		}
	})
}

// An agent that outlives its execution is adopted with all that it has in flight:
// nothing is unknown, what is asked stays asked, and the next claim is uncertain.
//
// proves REC-10 REC-7 REC-4 LEA-1 LEA-2 COO-2
func TestRecover_AdoptsTheAgent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAgentRun(t, s)
		must(t, s.ExpireClaim(t.Context(), r.Claim))
		done, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), Agent: true})
		if err != nil || !done {
			t.Fatalf("%v, %v", done, err)
		}
		st := storetest.MustState(t, s, r.Session)
		b := storetest.Body[*journal.StepRecovered](t, storetest.Events(t, s, r.Session))
		if len(b.Attempts) != 1 || b.Attempts[0] != (journal.RecoveredAttempt{AttemptID: r.attempt, Became: journal.AttemptIsAdopted}) {
			t.Errorf("attempts %+v", b.Attempts)
		}
		if !st.Adopts() || st.Unknowns() != 0 || len(st.Pending) != 1 || len(st.Attempts) != 1 || st.Recoveries != 0 || st.RunnableAt == 0 {
			t.Errorf("%+v", st)
		}
		seeWorker(t, s, "w")
		noClaim(t, s, r.Session, "elsewhere") // its folder's workers live, and only they can follow it
		c, err := s.Claim(t.Context(), claimRequest(r.Session, "w"))
		must(t, err)
		if c == nil || c.Phase != journal.PhaseUncertain {
			t.Fatalf("claimed %+v", c)
		}
		storetest.MustAppend(t, s, c, "", storetest.Settle(r.runs, journal.CallSucceeded), storetest.Settle(r.reads, journal.CallSucceeded),
			&journal.PermissionCancelled{ID: r.request, Reason: "over"}, storetest.Settle(r.waits, journal.CallCancelled), &journal.AttemptSettled{AttemptID: r.attempt, Outcome: "end_turn"})
		if st := storetest.MustState(t, s, r.Session); st.Adopts() || st.InFlight() || st.Process == nil {
			t.Errorf("%+v", st)
		}
	})
}

// An agent that is gone leaves its attempt and what it did unknown; what waited for
// an answer did not run, and can't be answered any more.
//
// proves ATT-3 CAL-4 PER-6 REC-4
func TestRecover_LosesTheAgent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, lose := range map[string]func(r *agentRun){
			"recovered": func(r *agentRun) { storetest.MustLose(t, s, r.Claim) },
			"its folder's workers are gone": func(r *agentRun) {
				must(t, s.ExpireClaim(t.Context(), r.Claim))
				_, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), Agent: true})
				must(t, err)
				_, err = s.Claim(t.Context(), claimRequest(r.Session, "elsewhere"))
				must(t, err)
			},
		} {
			r := mustAgentRun(t, s)
			// It may run what it asks nobody for without a word; not what it has just asked for.
			silent, judged, quiet := r.own(t, s, journal.EffectEffect), r.own(t, s, journal.EffectEffect), r.own(t, s, journal.EffectRead)
			said, allowed := r.own(t, s, journal.EffectEffect), r.own(t, s, journal.EffectEffect) // to run, by itself and by a rule, and then asked for
			byRule := announced(allowed)
			byRule.AllowedBy = journal.AllowedBy{Type: journal.AllowedByRule}
			storetest.MustAppend(t, s, r.Claim, "", announced(said), byRule)
			must(t, r.tell(t, s, store.AgentIO{Sent: 2, Asks: []store.AgentAsk{{N: 7, CallID: judged, Request: "{}"}, {N: 8, CallID: said, Request: "{}"}, {N: 9, CallID: allowed, Request: "{}"}}}))
			lose(r)
			st := storetest.MustState(t, s, r.Session)
			if len(st.UnknownAttempts) != 1 || !slices.Equal(st.UnknownCalls, []string{r.runs, silent, allowed}) || len(st.Pending) != 0 || len(st.Calls) != 0 || st.InFlight() || st.Adopts() || st.Process != nil {
				t.Errorf("%s: %+v", name, st)
			}
			for id, want := range map[string]journal.CallState{r.runs: journal.CallIsUnknown, r.waits: journal.CallCancelled, r.reads: journal.CallCancelled, silent: journal.CallIsUnknown, judged: journal.CallCancelled, said: journal.CallCancelled, allowed: journal.CallIsUnknown, quiet: journal.CallCancelled} {
				if got := callState(t, s, r.Run, id); got != want {
					t.Errorf("%s: the call is %s, want %s", name, got, want)
				}
			}
			for _, became := range storetest.Body[*journal.StepRecovered](t, storetest.Events(t, s, r.Session)).Calls {
				if got := callState(t, s, r.Run, became.CallID); got != became.Became {
					t.Errorf("%s: it is said that the call became %s, and it is %s", name, became.Became, got)
				}
			}
			noClaim(t, s, r.Session, "w")
		}
	})
}

// A call that was let run before its agent asked for it once more may have run when the
// agent is lost, or the turn stopped: nobody knows how it ended.
//
// proves CAL-4 CAL-7 COO-4
func TestRecover_WhatRanBeforeItWasAskedOnceMore(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, rejected := range []bool{false, true} {
			r := mustAgentRun(t, s)
			again := store.NewID("per")
			storetest.MustAppend(t, s, r.Claim, "", storetest.Ask(again, r.runs), &journal.CallOutput{CallID: r.runs, Stream: "stdout", Text: journal.T("out")})
			if rejected {
				_, err := s.Decide(t.Context(), r.Owner, again, store.Decision{Reply: journal.ReplyReject, Message: "no"})
				must(t, err)
				if got := callState(t, s, r.Run, r.runs); got != journal.CallIsWaiting {
					t.Errorf("it is %s", got)
				}
			}
			storetest.MustLose(t, s, r.Claim)
			st := storetest.MustState(t, s, r.Session)
			b := storetest.Body[*journal.StepRecovered](t, storetest.Events(t, s, r.Session))
			became := slices.ContainsFunc(b.Calls, func(c journal.RecoveredCall) bool { return c.CallID == r.runs && c.Became == journal.CallIsUnknown })
			if !slices.Equal(st.UnknownCalls, []string{r.runs}) || len(st.Pending) != 0 || !became {
				t.Errorf("%+v, %+v", st, b.Calls)
			}
			if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
				t.Errorf("verify says %+v, %v", report.Checks, err)
			}
		}
	})
}

// proves COO-4
func TestAppend_WhatAnAgentDidIsToldAlsoWhenItWasStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAgentRun(t, s)
		id := r.own(t, s, journal.EffectEffect)
		must(t, s.RequestInterrupt(t.Context(), r.Owner, r.Session, journal.InterruptNow))
		_, err := s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(storetest.Dispatch(id, 1))})
		storetest.WantSlug(t, err, "interrupted")
		_, err = s.Append(t.Context(), r.Claim, store.Append{Drafts: storetest.Drafts(&journal.AttemptDispatched{AttemptID: r.attempt})})
		storetest.WantSlug(t, err, "interrupted")
		storetest.MustAppend(t, s, r.Claim, "", announced(id))
	})
}

// A process is listed for its folder until it is forgotten, which waits for its attempt.
func TestAgentProcess_ListedUntilForgotten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAgentRun(t, s)
		list, _, err := s.AgentProcesses(t.Context(), r.Claim.StateFolderID, "", 10)
		if err != nil || len(list) != 1 || !list[0].Busy || !list[0].Claimed || !list[0].Current {
			t.Fatalf("%+v, %v", list, err)
		}
		storetest.WantSlug(t, s.ForgetAgentProcess(t.Context(), list[0], store.AgentEnd{}), "attempt-state")
		storetest.MustLose(t, s, r.Claim)
		if lost, _, err := s.AgentProcesses(t.Context(), r.Claim.StateFolderID, "", 10); err != nil || len(lost) != 1 || lost[0].Busy || lost[0].Current {
			t.Errorf("%+v, %v; want one that nobody needs", lost, err)
		}
		must(t, s.ForgetAgentProcess(t.Context(), list[0], store.AgentEnd{}))
		list, _, err = s.AgentProcesses(t.Context(), r.Claim.StateFolderID, "", 10)
		if err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// An execution that can't go on, although its server and its agent are there, counts
// as one that is lost: the third blocks the session, and its agent is given up.
//
// proves REC-11 REC-10 ATT-3
func TestRecover_AnAgentThatCantBeFollowedIsGivenUp(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAgentRun(t, s)
		seeWorker(t, s, "w")
		lose := func(failed bool) journal.State {
			t.Helper()
			must(t, s.ExpireClaim(t.Context(), r.Claim))
			done, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), Agent: true, Failed: failed, By: r.Claim.StateFolderID})
			if err != nil || !done {
				t.Fatalf("%v, %v", done, err)
			}
			return storetest.MustState(t, s, r.Session)
		}
		for _, failed := range []bool{true, false, true} {
			if st := lose(failed); st.Blocked != nil || !st.Adopts() {
				t.Fatalf("%+v", st)
			}
			c, err := s.Claim(t.Context(), claimRequest(r.Session, "w"))
			must(t, err)
			r.Claim = c
		}
		st := lose(true)
		if st.Blocked == nil || st.Blocked.Cause != journal.BlockRecovery || st.Adopts() || st.Process != nil || len(st.UnknownAttempts) != 1 || len(st.Pending) != 0 {
			t.Errorf("%+v", st)
		}
		events := storetest.Events(t, s, r.Session)
		if end := storetest.Body[*journal.AgentEnded](t, events); end.Reason == "" || storetest.CountKind(events, journal.KindAgentEnded) != 1 {
			t.Errorf("its process ended %d times, so: %+v", storetest.CountKind(events, journal.KindAgentEnded), end)
		}
		noClaim(t, s, r.Session, "w")
		storetest.CheckInvariants(t, s)
	})
}

// Who goes on without a process that only another state folder's servers can ask of says
// that it may still run, where and since when, and never that it has ended; its end is
// journalled when it is seen. Of one's own it is known.
//
// proves LEA-12 ATT-3 CAL-7 REC-4
func TestRecover_AnAgentThatMayStillRun(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for name, c := range map[string]struct {
			by    string
			adopt bool // first, by a folder whose servers are gone then
		}{"by another folder": {by: "elsewhere"}, "after it was adopted": {by: "elsewhere", adopt: true}, "by its own": {}} {
			r := mustAgentRun(t, s)
			folder := r.Claim.StateFolderID
			second := store.NewID("prc")
			must(t, s.ForgetAgentProcess(t.Context(), store.AgentProcessRow{ID: "prc_none", SessionID: r.Session}, store.AgentEnd{}))
			storetest.MustAppend(t, s, r.Claim, "", &journal.AgentStarted{ProcessID: second, StateFolderID: folder, Process: &journal.Process{Host: "build-2", PID: 7}})
			must(t, s.ExpireClaim(t.Context(), r.Claim))
			by := cmp.Or(c.by, folder)
			if c.adopt {
				_, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), Agent: true})
				must(t, err)
				_, err = s.Claim(t.Context(), claimRequest(r.Session, by))
				must(t, err)
			} else {
				_, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), By: by})
				must(t, err)
			}
			evs := storetest.Events(t, s, r.Session)
			lost, ended := storetest.CountKind(evs, journal.KindAgentLost), storetest.CountKind(evs, journal.KindAgentEnded)
			st := storetest.MustState(t, s, r.Session)
			if c.by == "" {
				if lost != 0 || ended != 1 || st.LostWith(r.attempt) != nil {
					t.Errorf("%s: %d lost, %d ended, %+v", name, lost, ended, st)
				}
				continue
			}
			b := storetest.Body[*journal.AgentLost](t, evs)
			if lost != 1 || ended != 0 || b.ProcessID != second || b.Host != "build-2" || b.PID != 7 || b.Since == 0 || !slices.Equal(b.Attempts, []string{r.attempt}) || st.Process != nil || st.LostWith(r.attempt) == nil {
				t.Fatalf("%s: %d lost, %d ended, %+v, state %+v", name, lost, ended, b, st)
			}
			evidence := func() []journal.Evidence {
				call, err := s.Call(t.Context(), r.Owner, r.runs)
				must(t, err)
				return call.Evidence
			}
			if all := evidence(); !strings.Contains(all[len(all)-1].Text, "The agent's process ran on build-2 as pid 7 since ") || !strings.HasSuffix(all[len(all)-1].Text, "It may still be running there.") {
				t.Errorf("%s: the call says %+v", name, all)
			}
			end := store.AgentEnd{Ended: journal.AgentEnded{ProcessID: second, Signal: "SIGKILL"}, Evidence: journal.Evidence{Type: "process", Text: "It ended."}}
			for range 2 {
				must(t, s.ForgetAgentProcess(t.Context(), store.AgentProcessRow{ID: second, SessionID: r.Session}, end))
			}
			evs = storetest.Events(t, s, r.Session)
			if st := storetest.MustState(t, s, r.Session); storetest.CountKind(evs, journal.KindAgentEnded) != 1 || st.LostWith(r.attempt) != nil || len(st.UnknownAttempts) != 1 {
				t.Errorf("%s: after its end was seen: %+v", name, st)
			}
			if all := evidence(); all[len(all)-1].Text != "It ended." {
				t.Errorf("%s: the call says %+v", name, all)
			}
		}
		storetest.CheckInvariants(t, s)
	})
}

// Since when a call may run is known also if its dispatch and its end are one commit.
//
// proves CAL-5
func TestAppend_SinceWhenACallIsUnknown(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		r := mustAgentRun(t, s)
		id := r.own(t, s, journal.EffectEffect)
		evs := storetest.MustAppend(t, s, r.Claim, "", announced(id), &journal.CallUnknown{CallID: id})
		b := storetest.Body[*journal.CallUnknown](t, evs)
		if b.Since == 0 || b.Since != evs[0].Time {
			t.Errorf("since %d, want %d", b.Since, evs[0].Time)
		}
		storetest.MustAppend(t, s, r.Claim, "", &journal.CallUnknown{CallID: r.runs})
		if n, err := s.Unknowns(t.Context(), r.Session); n != 2 || err != nil {
			t.Errorf("%d unknown, %v", n, err)
		}
		_, err := s.Unknowns(t.Context(), "ses_none")
		storetest.WantCode(t, err, journal.NotFound)
	})
}
