package store_test

import (
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
			lose(r)
			st := storetest.MustState(t, s, r.Session)
			if len(st.UnknownAttempts) != 1 || len(st.UnknownCalls) != 1 || st.UnknownCalls[0] != r.runs || len(st.Pending) != 0 || len(st.Calls) != 0 || st.InFlight() || st.Adopts() || st.Process != nil {
				t.Errorf("%s: %+v", name, st)
			}
			for id, want := range map[string]journal.CallState{r.runs: journal.CallIsUnknown, r.waits: journal.CallCancelled, r.reads: journal.CallCancelled} {
				if got := callState(t, s, r.Run, id); got != want {
					t.Errorf("%s: the call is %s, want %s", name, got, want)
				}
			}
			noClaim(t, s, r.Session, "w")
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
		storetest.WantSlug(t, s.ForgetAgentProcess(t.Context(), list[0]), "attempt-state")
		storetest.MustLose(t, s, r.Claim)
		if lost, _, err := s.AgentProcesses(t.Context(), r.Claim.StateFolderID, "", 10); err != nil || len(lost) != 1 || lost[0].Busy || lost[0].Current {
			t.Errorf("%+v, %v; want one that nobody needs", lost, err)
		}
		must(t, s.ForgetAgentProcess(t.Context(), list[0]))
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
			done, err := s.Recover(t.Context(), store.Recovery{Claim: storetest.MustLoad(t, s, r.Claim), Agent: true, Failed: failed})
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
		noClaim(t, s, r.Session, "w")
		storetest.CheckInvariants(t, s)
	})
}
