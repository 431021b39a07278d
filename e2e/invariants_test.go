package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// checkJournal holds what all servers of a world have left in its database
// against the invariants. It looks at the tables from outside, after the servers
// have ended:
//
//	I1  what was acknowledged is in the journal
//	I2  the seqs of a session are 1, 2, 3, …
//	I3  the executions of a session follow each other and never come back
//	I4  a key has one receipt for ever, and each receipt its event
//	I6  a call is dispatched before anything else is known of its execution;
//	    one of class effect is dispatched once
//	I7  an execution is recovered once, and writes nothing after that
//	I9  no claim is left over
//
// I5 is for the tests that count effects, I8 for those that read streams.
func (w *world) checkJournal() {
	w.t.Helper()
	db := w.sql()
	byID := w.readEvents(db)
	w.checkAcknowledged(byID)
	for id, j := range byID {
		for _, fault := range slices.Concat(checkDense(j), checkFence(j), checkCalls(j)) {
			w.t.Errorf("session %s: %s", id, fault)
		}
		if w.t.Failed() {
			w.t.Logf("journal of %s:\n%s", id, j.dump())
		}
		if next := w.db.Count(w.t, db, "SELECT next_seq FROM session WHERE id = ?", id); next != j.last() {
			w.t.Errorf("session %s: next_seq is %d after the event %d", id, next, j.last())
		}
	}
	w.checkReceipts(db, byID)
	w.verify()
	if n := w.db.Count(w.t, db, "SELECT count(*) FROM session WHERE (execution_id IS NULL) <> (NOT EXISTS (SELECT 1 FROM claim c WHERE c.session_id = session.id AND c.execution_id = session.execution_id))"); n > 0 {
		w.t.Errorf("LEA-10: %d sessions whose execution and claim are not one fact", n)
	}
	if n := w.db.Count(w.t, db, "SELECT count(*) FROM claim"); n > 0 {
		w.t.Errorf("I9: %d claims are left over", n)
	}
}

// verify holds the journal against its own rebuild (JRN-4), as an operator would.
func (w *world) verify() {
	w.t.Helper()
	if o := w.run("", "verify"); o.code != 0 {
		w.t.Errorf("holdfast verify: exit %d\n%s%s", o.code, o.out, o.err)
	}
}

func (w *world) readEvents(db *sql.DB) map[string]journal {
	w.t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(w.t.Context()), "SELECT session_id, seq, id, kind, execution_id, data FROM event ORDER BY session_id, seq")
	if err != nil {
		w.t.Fatalf("read the journal: %v", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]journal{}
	for rows.Next() {
		var e event
		var execution sql.NullString
		var data string
		if err := rows.Scan(&e.SessionID, &e.Seq, &e.ID, &e.Kind, &execution, &data); err != nil {
			w.t.Fatalf("read the journal: %v", err)
		}
		if execution.Valid {
			e.ExecutionID = &execution.String
		}
		e.Data = json.RawMessage(data)
		out[e.SessionID] = append(out[e.SessionID], e)
	}
	if err := rows.Err(); err != nil {
		w.t.Fatalf("read the journal: %v", err)
	}
	return out
}

// checkAcknowledged is I1, and I4 as its callers saw it.
func (w *world) checkAcknowledged(byID map[string]journal) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.sessions {
		if byID[id].count("session.created") != 1 {
			w.t.Errorf("I1: the session %s was acknowledged and has %d session.created", id, byID[id].count("session.created"))
		}
	}
	for _, r := range w.acked {
		i := byID[r.SessionID].at("prompt.admitted", func(e event) bool { return e.str("prompt_id") == r.ID })
		if i < 0 {
			w.t.Errorf("I1: the prompt %s was acknowledged and isn't in the journal of %s", r.ID, r.SessionID)
			continue
		}
		if seq := byID[r.SessionID][i].Seq; seq != r.AdmittedSeq {
			w.t.Errorf("I4: the prompt %s was acknowledged as event %d and is %d", r.ID, r.AdmittedSeq, seq)
		}
	}
}

// checkReceipts is I4 in the tables: each receipt's event is there.
func (w *world) checkReceipts(db *sql.DB, byID map[string]journal) {
	w.t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(w.t.Context()), "SELECT operation, session_id, subject_id, seq FROM receipt")
	if err != nil {
		w.t.Fatalf("read the receipts: %v", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var operation, id, subject string
		var seq int64
		if err := rows.Scan(&operation, &id, &subject, &seq); err != nil {
			w.t.Fatalf("read the receipts: %v", err)
		}
		j := byID[id]
		if seq < 1 || seq > j.last() {
			w.t.Errorf("I4: the receipt of %s %s names event %d of %d", operation, subject, seq, j.last())
			continue
		}
		if operation == "prompts.create" && (j[seq-1].Kind != "prompt.admitted" || j[seq-1].str("prompt_id") != subject) {
			w.t.Errorf("I4: the receipt of %s names event %d, a %s", subject, seq, j[seq-1].Kind)
		}
	}
	if err := rows.Err(); err != nil {
		w.t.Fatalf("read the receipts: %v", err)
	}
}

// checkDense is I2.
func checkDense(j journal) []string {
	var bad []string
	ids := map[string]bool{}
	for i := range j {
		if want := int64(i + 1); j[i].Seq != want {
			return append(bad, fmt.Sprintf("I2: event %d stands where %d should", j[i].Seq, want))
		}
		if ids[j[i].ID] {
			bad = append(bad, "I2: the event id "+j[i].ID+" stands twice")
		}
		ids[j[i].ID] = true
	}
	return bad
}

// checkFence is I3 and I7: one execution after the other, and none after its recovery.
func checkFence(j journal) []string {
	var bad []string
	over := map[string]string{}
	current := ""
	for i := range j {
		e := &j[i]
		if e.ExecutionID != nil && *e.ExecutionID != current {
			if why := over[*e.ExecutionID]; why != "" {
				bad = append(bad, fmt.Sprintf("I3: event %d (%s) is of the execution %s, %s", e.Seq, e.Kind, *e.ExecutionID, why))
			}
			if current != "" {
				over[current] = "which another one had followed"
			}
			current = *e.ExecutionID
		}
		if e.Kind == "step.recovered" {
			lost := e.str("execution_id")
			if over[lost] == "which was recovered" {
				bad = append(bad, fmt.Sprintf("I7: event %d recovers %s a second time", e.Seq, lost))
			}
			over[lost] = "which was recovered"
			if current == lost {
				current = ""
			}
		}
	}
	return bad
}

// checkCalls is I6, and that an effect is dispatched once (CAL-2, CAL-4): what an agent said
// to run, and then asks for, hasn't begun unless it has put something out.
func checkCalls(j journal) []string {
	var bad []string
	type seen struct {
		effect                     string
		proposed, dispatched, ends int
		announced                  bool
	}
	calls := map[string]*seen{}
	for i := range j {
		id := j[i].str("call_id")
		c := calls[id]
		if c == nil && j[i].Kind != "call.proposed" {
			if id != "" {
				bad = append(bad, fmt.Sprintf("I6: event %d (%s) is of a call that was never proposed", j[i].Seq, j[i].Kind))
			}
			continue
		}
		switch j[i].Kind {
		case "call.proposed":
			calls[id] = &seen{effect: j[i].str("effect"), proposed: 1}
		case "call.dispatched":
			if c.dispatched++; c.dispatched > 1 && c.effect == "effect" && !c.announced {
				bad = append(bad, fmt.Sprintf("CAL-4: event %d dispatches the effect %s again", j[i].Seq, id))
			}
			c.announced = j[i].announces()
		case "call.output", "call.unknown":
			if c.dispatched == 0 {
				bad = append(bad, fmt.Sprintf("I6: event %d (%s) before %s was dispatched", j[i].Seq, j[i].Kind, id))
			}
			c.ends += boolInt(j[i].Kind == "call.unknown")
			c.announced = false
		case "call.settled":
			if state := j[i].str("state"); c.dispatched == 0 && (state == "succeeded") {
				bad = append(bad, fmt.Sprintf("I6: event %d settles %s as %s, which was never dispatched", j[i].Seq, id, state))
			}
			c.ends++
		}
		if c != nil && c.ends > 1 {
			bad = append(bad, fmt.Sprintf("CAL-8: event %d ends %s a second time", j[i].Seq, id))
		}
	}
	return bad
}

// announces reports whether a call is dispatched by its agent's word alone, who may ask for
// it then.
func (e *event) announces() bool {
	var b struct {
		AllowedBy struct {
			Type string `json:"type"`
		} `json:"allowed_by"`
	}
	return e.Kind == "call.dispatched" && json.Unmarshal(e.Data, &b) == nil && b.AllowedBy.Type == "agent"
}

// letRun counts the dispatches by somebody else than the agent, which on a slow machine says
// some time before it asks that a call runs.
func (j journal) letRun() int {
	n := 0
	for i := range j {
		n += boolInt(j[i].Kind == "call.dispatched" && !j[i].announces())
	}
	return n
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// An invariant that can't fail proves nothing: each finds its own sample.
func TestInvariants_CanFail(t *testing.T) {
	t.Parallel()
	a, b := "exe_a", "exe_b"
	ev := func(seq int64, kind, data string, execution *string) event {
		return event{ID: fmt.Sprint("evt_", seq), Seq: seq, Kind: kind, Data: json.RawMessage(data), ExecutionID: execution}
	}
	proposed := ev(1, "call.proposed", `{"call_id":"c","effect":"effect"}`, &a)
	dispatched := ev(2, "call.dispatched", `{"call_id":"c"}`, &a)
	byAgent := ev(2, "call.dispatched", `{"call_id":"c","allowed_by":{"type":"agent"}}`, &a)
	samples := map[string]struct {
		check func(journal) []string
		j     journal
		want  int
	}{
		"gap":                 {checkDense, journal{proposed, ev(3, "x", `{}`, nil)}, 1},
		"dense":               {checkDense, journal{proposed, dispatched}, 0},
		"twice":               {checkDense, journal{proposed, {ID: proposed.ID, Seq: 2}}, 1},
		"comes back":          {checkFence, journal{ev(1, "x", `{}`, &a), ev(2, "x", `{}`, &b), ev(3, "x", `{}`, &a)}, 1},
		"follows":             {checkFence, journal{ev(1, "x", `{}`, &a), ev(2, "x", `{}`, nil), ev(3, "x", `{}`, &a), ev(4, "x", `{}`, &b)}, 0},
		"after its recovery":  {checkFence, journal{ev(1, "x", `{}`, &a), ev(2, "step.recovered", `{"execution_id":"exe_a"}`, nil), ev(3, "x", `{}`, &a)}, 1},
		"recovered twice":     {checkFence, journal{ev(1, "step.recovered", `{"execution_id":"exe_a"}`, nil), ev(2, "step.recovered", `{"execution_id":"exe_a"}`, nil)}, 1},
		"dispatched twice":    {checkCalls, journal{proposed, dispatched, ev(3, "call.dispatched", `{"call_id":"c"}`, &a)}, 1},
		"announced":           {checkCalls, journal{proposed, byAgent, ev(3, "call.dispatched", `{"call_id":"c"}`, &a)}, 0},
		"ran by itself":       {checkCalls, journal{proposed, byAgent, ev(3, "call.output", `{"call_id":"c"}`, &a), ev(4, "call.dispatched", `{"call_id":"c"}`, &a)}, 1},
		"output undispatched": {checkCalls, journal{proposed, ev(2, "call.output", `{"call_id":"c"}`, &a)}, 1},
		"never proposed":      {checkCalls, journal{ev(1, "call.dispatched", `{"call_id":"c"}`, &a)}, 1},
		"settled twice":       {checkCalls, journal{proposed, dispatched, ev(3, "call.settled", `{"call_id":"c"}`, &a), ev(4, "call.unknown", `{"call_id":"c"}`, nil)}, 1},
		"whole":               {checkCalls, journal{proposed, dispatched, ev(3, "call.output", `{"call_id":"c"}`, &a), ev(4, "call.settled", `{"call_id":"c","state":"succeeded"}`, &a)}, 0},
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		s := samples[name]
		if got := s.check(s.j); len(got) != s.want {
			t.Errorf("%s: found %v, want %d faults", name, got, s.want)
		}
	}
}
