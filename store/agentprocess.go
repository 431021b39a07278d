package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"holdfast/journal"
)

// AgentProcess is what a worker must know of an agent's process to go on with it.
type AgentProcess struct {
	ID            string       `db:"id"`
	SessionID     string       `db:"session_id"`
	StateFolderID string       `db:"state_folder_id"`
	ReadTo        int64        `db:"read_to"` // whole frames of its spool whose lines are in the journal
	Skip          int64        `db:"skip"`    // bytes of its standard output behind ReadTo that are, too
	Sent          int64        `db:"sent"`    // the last frame that it was to be told
	Frames        []AgentFrame `db:"-"`       // those that its shim may not have, in order
	Asks          []AgentAsk   `db:"-"`       // that have no answer, in order
}

// AgentAsk is a request of an agent that waits for its answer.
type AgentAsk struct {
	N       int64  `db:"n"` // in the order of arrival
	CallID  string `db:"call_id"`
	Request string `db:"request"` // what the answer needs of it

	Shape *journal.Shape `db:"-"` // what of the request isn't masked when it is kept; nil: all is
}

// AgentFrame is one of what an agent's process is told.
type AgentFrame struct {
	N    int64  `db:"n"`
	Data []byte `db:"data"`
}

// AgentIO is what goes with an append of who follows an agent's process: how far
// it was read, and what it is told, both in the transaction of the facts that were
// made of that or that cause it. So each line is journalled once, and each frame
// is given once, whoever dies in between.
type AgentIO struct {
	ProcessID string
	Begins    string // the state folder that keeps it, with its agent.started; else ""
	ReadTo    int64
	Skip      int64
	Sent      int64 // the last frame before Frames
	Frames    [][]byte
	Logged    int64 // frames up to this one are on the disk of its shim, and kept no longer
	Asks      []AgentAsk
	Answered  []int64 // asks that the frames answer
}

// agentIO writes down what was read and what is to be said. Code: conflict if
// somebody read or said something else meanwhile.
func (l *locked) agentIO(ctx context.Context, io AgentIO) error {
	last := io.Sent + int64(len(io.Frames))
	n, err := l.moveAgent(ctx, io, last)
	if err != nil {
		return err
	}
	if n != 1 {
		return journal.Errorf(journal.Conflict, "The agent's process %s was read further than %d, or told more than %d, already.", io.ProcessID, io.ReadTo, io.Sent).Typed("agent-state")
	}
	for i, data := range io.Frames {
		if _, err := l.t.exec(ctx, "INSERT INTO agent_frame (process_id, n, data) VALUES (?, ?, ?)", io.ProcessID, io.Sent+int64(i)+1, data); err != nil {
			return err
		}
	}
	for _, a := range io.Asks {
		request, err := l.clean().Shaped([]byte(a.Request), a.Shape) // it holds what the agent said (OWN-3)
		if err != nil {
			return err
		}
		if _, err := l.t.exec(ctx, "INSERT INTO agent_ask (process_id, n, call_id, request) VALUES (?, ?, ?, ?)", io.ProcessID, a.N, a.CallID, string(request)); err != nil {
			return err
		}
	}
	for _, n := range io.Answered {
		if _, err := l.t.exec(ctx, "DELETE FROM agent_ask WHERE process_id = ? AND n = ?", io.ProcessID, n); err != nil {
			return err
		}
	}
	if io.Logged > 0 {
		_, err = l.t.exec(ctx, "DELETE FROM agent_frame WHERE process_id = ? AND n <= ?", io.ProcessID, io.Logged)
	}
	return err
}

func (l *locked) moveAgent(ctx context.Context, io AgentIO, last int64) (int64, error) {
	if io.Begins != "" {
		return l.t.exec(ctx, "INSERT INTO agent_process (id, session_id, state_folder_id, read_to, skip, sent, used_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
			io.ProcessID, l.row.ID, io.Begins, io.ReadTo, io.Skip, last, l.now)
	}
	return l.t.exec(ctx, "UPDATE agent_process SET read_to = ?, skip = ?, sent = ?, used_at = ? WHERE id = ? AND session_id = ? AND sent = ? AND (read_to < ? OR (read_to = ? AND skip <= ?))",
		io.ReadTo, io.Skip, last, l.now, io.ProcessID, l.row.ID, io.Sent, io.ReadTo, io.ReadTo, io.Skip)
}

// told reports that an append without events had committed although its answer was
// lost: it had none, or what it had to give up was over.
func told(ctx context.Context, q querier, a Append) (bool, error) {
	if a.Agent == nil || !onlyGivesUp(a.Drafts) || len(a.Drafts) > 0 && len(a.Agent.Frames) == 0 { // that may be done twice
		return false, nil
	}
	var n int
	io := a.Agent
	err := q.get(ctx, &n, "SELECT count(*) FROM agent_process WHERE id = ? AND sent = ? AND read_to = ? AND skip = ?", io.ProcessID, io.Sent+int64(len(io.Frames)), io.ReadTo, io.Skip)
	return n > 0, err
}

const agentColumns = "id, session_id, state_folder_id, read_to, skip, sent"

// AgentProcess reads how far a process of the session's agent was read, and what
// it may not have been told. Code: not_found.
func (s *Store) AgentProcess(ctx context.Context, id string) (AgentProcess, error) {
	var out AgentProcess
	err := s.read(ctx, func(q querier) error {
		out = AgentProcess{}
		err := q.get(ctx, &out, "SELECT "+agentColumns+" FROM agent_process WHERE id = ?", id)
		if errors.Is(err, sql.ErrNoRows) {
			return journal.Errorf(journal.NotFound, "There is no process %s of an agent.", id).Typed("no-such-process")
		}
		if err != nil {
			return err
		}
		if err := q.all(ctx, &out.Frames, "SELECT n, data FROM agent_frame WHERE process_id = ? ORDER BY n", id); err != nil {
			return err
		}
		return q.all(ctx, &out.Asks, "SELECT n, call_id, request FROM agent_ask WHERE process_id = ? ORDER BY n", id)
	})
	return out, err
}

// AgentProcessRow is a process with what its keeper must know of its session:
// whether to leave it, to end it or to clear it away.
type AgentProcessRow struct {
	ID        string         `db:"id"`
	SessionID string         `db:"session_id"`
	UsedAt    int64          `db:"used_at"`
	Claimed   bool           `db:"claimed"` // its session is, live or expired
	Current   bool           `db:"-"`       // the journal knows of no end of it, and of none that came after it
	Busy      bool           `db:"-"`       // an attempt of it is in flight
	State     sql.NullString `db:"state"`
}

// AgentProcesses lists what a state folder keeps, by id, with the database's
// clock. after is the last one of the page before.
func (s *Store) AgentProcesses(ctx context.Context, folder, after string, limit int) (out []AgentProcessRow, now int64, err error) {
	err = s.read(ctx, func(q querier) error {
		d := q.dialect()
		out = nil
		if err := q.get(ctx, &now, "SELECT "+d.now(), d.nowArg()); err != nil {
			return err
		}
		if err := q.all(ctx, &out, "SELECT p.id, p.session_id, p.used_at, s.execution_id IS NOT NULL AS claimed, s.state FROM agent_process p JOIN session s ON s.id = p.session_id WHERE p.state_folder_id = ? AND p.id > ? ORDER BY p.id LIMIT ?", folder, after, limit); err != nil {
			return err
		}
		for i := range out {
			st, err := (&sessionRow{ID: out[i].SessionID, State: out[i].State.String}).state()
			if err != nil {
				return err
			}
			out[i].Current = st.Process != nil && st.Process.ID == out[i].ID
			out[i].Busy = out[i].Current && len(st.Attempts) > 0
		}
		return nil
	})
	return out, now, err
}

// LostAgent is what is known of a process that another state folder keeps, for who goes
// on without it.
func (s *Store) LostAgent(ctx context.Context, sessionID, processID string) (out journal.AgentLost, err error) {
	err = s.read(ctx, func(q querier) error {
		out, err = lostAgent(ctx, q, sessionID, processID)
		return err
	})
	return out, err
}

// AgentStart gives the process that one of a session's agent was started as; nil: the
// journal doesn't say.
func (s *Store) AgentStart(ctx context.Context, sessionID, processID string) (out *journal.Process, err error) {
	err = s.read(ctx, func(q querier) error {
		out = nil
		var rows []eventRow
		if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND kind = 'agent.started' ORDER BY seq DESC", sessionID); err != nil {
			return err
		}
		for i := range rows {
			ev := rows[i].event()
			body, err := ev.Decode()
			if err != nil {
				return err
			}
			if b, ok := body.(*journal.AgentStarted); ok && b.ProcessID == processID {
				out = b.Process
				return nil
			}
		}
		return nil
	})
	return out, err
}

// lostAgent reads where a process of the session's agent ran, and since when.
func lostAgent(ctx context.Context, q querier, sessionID, processID string) (journal.AgentLost, error) {
	out := journal.AgentLost{ProcessID: processID}
	var rows []eventRow
	if err := q.all(ctx, &rows, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND kind = 'agent.started' ORDER BY seq DESC LIMIT 1", sessionID); err != nil || len(rows) == 0 {
		return out, err
	}
	ev := rows[0].event()
	body, err := ev.Decode()
	if err != nil {
		return out, err
	}
	if b, ok := body.(*journal.AgentStarted); ok && b.ProcessID == processID {
		out.Since = ev.Time
		if b.Process != nil {
			out.Host, out.PID = b.Process.Host, b.Process.PID
		}
	}
	return out, nil
}

// AgentEnd is how a process ended, and what that says of the calls that ran in it.
type AgentEnd struct {
	Ended    journal.AgentEnded
	Evidence journal.Evidence
}

// lateEnd journals the end of a process that the session went on without (LEA-12), and
// says it of the calls that are unknown because of that.
func (l *locked) lateEnd(ctx context.Context, end AgentEnd) error {
	i := slices.IndexFunc(l.st.Lost, func(p journal.AgentLost) bool { return p.ProcessID == end.Ended.ProcessID })
	if i < 0 {
		return nil
	}
	attempts := l.st.Lost[i].Attempts
	if err := l.append(ctx, journal.Server(), &end.Ended); err != nil {
		return err
	}
	for _, id := range l.st.UnknownCalls {
		c, err := loadCall(ctx, l.t, id)
		if err != nil {
			return err
		}
		if !slices.Contains(attempts, c.AttemptID) {
			continue
		}
		if err := l.append(ctx, journal.Server(), &journal.CallEvidence{CallID: id, Evidence: end.Evidence}); err != nil {
			return err
		}
	}
	return l.flush(ctx)
}

// ForgetAgentProcess removes the row of a process that has ended, with what it was
// to be told. If the session went on without it, and nobody knew its end, that is
// journalled. Code: conflict while an attempt of it is in flight.
func (s *Store) ForgetAgentProcess(ctx context.Context, row AgentProcessRow, end AgentEnd) error {
	return s.write(ctx, row.SessionID, func(ctx context.Context, t *tx) error {
		l, err := t.lockSelect(ctx, row.SessionID, t.dialect().lock())
		if err != nil {
			return err
		}
		current := l.st.Process != nil && l.st.Process.ID == row.ID
		if current && len(l.st.Attempts) > 0 {
			return journal.Errorf(journal.Conflict, "The agent's process %s has an attempt in flight.", row.ID).Typed("attempt-state")
		}
		for _, q := range []string{"DELETE FROM agent_ask WHERE process_id = ?", "DELETE FROM agent_frame WHERE process_id = ?", "DELETE FROM agent_process WHERE id = ?"} {
			if _, err := t.exec(ctx, q, row.ID); err != nil {
				return err
			}
		}
		return l.lateEnd(ctx, end)
	})
}

// Streamed gives what was streamed of a message so far, for who goes on with it, and
// whether it was said whole: then its text is in the journal, and isn't read.
func (s *Store) Streamed(ctx context.Context, sessionID, messageID string) (text string, whole bool, err error) {
	err = s.read(ctx, func(q querier) error {
		text, whole = "", false
		var row struct {
			Seq      int64 `db:"seq"`
			Complete bool  `db:"complete"`
		}
		err := q.get(ctx, &row, "SELECT seq, complete FROM message WHERE session_id = ? AND id = ?", sessionID, messageID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil || row.Complete {
			whole = row.Complete
			return err
		}
		text, err = streamed(ctx, q, sessionID, messageID, row.Seq)
		return err
	})
	return text, whole, err
}

// streamed puts the pieces of a message together, from the seq of the first on.
func streamed(ctx context.Context, q querier, sessionID, messageID string, seq int64) (string, error) {
	var text strings.Builder
	for {
		var page []eventRow
		if err := q.all(ctx, &page, "SELECT "+eventColumns+" FROM event WHERE session_id = ? AND seq >= ? AND kind = 'message.delta' ORDER BY seq LIMIT 500", sessionID, seq); err != nil || len(page) == 0 {
			return text.String(), err
		}
		for i := range page {
			ev := page[i].event()
			seq = ev.Seq + 1
			if err := addDelta(ctx, q, &text, &ev, messageID); err != nil {
				return "", err
			}
		}
	}
}

func addDelta(ctx context.Context, q querier, text *strings.Builder, ev *journal.Event, messageID string) error {
	body, err := ev.Decode()
	if err != nil {
		return err
	}
	d, ok := body.(*journal.MessageDelta)
	if !ok || d.MessageID != messageID {
		return nil
	}
	piece, err := fullText(ctx, q, ev.SessionID, d.Text)
	text.WriteString(piece)
	return err
}

// CurrentAgent gives the process of the session's agent if an attempt of it is in
// flight, without what it is to be told; else nil.
func (s *Store) CurrentAgent(ctx context.Context, sessionID string) (*AgentProcess, error) {
	var out *AgentProcess
	err := s.read(ctx, func(q querier) error {
		out = nil
		var row sessionRow
		if err := q.get(ctx, &row, "SELECT "+sessionColumns+" FROM session WHERE id = ?", sessionID); err != nil {
			return err
		}
		st, err := row.state()
		if err != nil || st.Process == nil || len(st.Attempts) == 0 {
			return err
		}
		var p AgentProcess
		err = q.get(ctx, &p, "SELECT "+agentColumns+" FROM agent_process WHERE id = ?", st.Process.ID)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		out = &p
		return err
	})
	return out, err
}

// outputText bounds what OutputText reads.
const outputText = 1 << 20

// OutputText gives the output of a call as the journal has it, of a long one only its
// beginning, and how many bytes the journal has.
func (s *Store) OutputText(ctx context.Context, session, callID string) (text string, total int64, err error) {
	err = s.read(ctx, func(q querier) error {
		if total, err = outputTotal(ctx, q, callID); err != nil {
			return err
		}
		data, _, err := outputFrom(ctx, q, session, callID, 0, outputText)
		text = string(data)
		return err
	})
	return text, total, err
}
