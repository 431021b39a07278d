package handlers

import (
	"encoding/json"

	"holdfast/journal"
	"holdfast/store"
)

// The shapes of docs: http. Members without a value are null where the contract
// says so, never left out. What a secret hides in them isn't told (OWN-3); members
// with the tag mask:"-" are this server's own, by which programs go.

type sessionJSON struct {
	ID                 string                 `json:"id" mask:"-"`
	Title              string                 `json:"title"`
	Agent              string                 `json:"agent" mask:"-"`
	Workspace          string                 `json:"workspace"`
	State              journal.ExecutionState `json:"state"`
	StateSince         string                 `json:"state_since" mask:"-"`
	LastSeq            int64                  `json:"last_seq"`
	PendingPrompts     int                    `json:"pending_prompts"`
	PendingPermissions int                    `json:"pending_permissions"`
	UnknownCalls       int                    `json:"unknown_calls"`
	UnknownAttempts    int                    `json:"unknown_attempts"`
	Forgotten          *forgottenJSON         `json:"forgotten"`
	Execution          *executionJSON         `json:"execution"`
	Usage              journal.Usage          `json:"usage"`
	Context            *contextJSON           `json:"context,omitempty"`
	Settings           []settingJSON          `json:"settings,omitempty"`
	CreatedAt          string                 `json:"created_at" mask:"-"`
	UpdatedAt          string                 `json:"updated_at" mask:"-"`
}

// forgottenJSON says that the agent can't go on with its conversation.
type forgottenJSON struct {
	Reason  string              `json:"reason"`
	How     journal.AgentMemory `json:"how"`
	MayPass bool                `json:"may_pass"`
}

type contextJSON struct {
	Used int64  `json:"used"` // tokens
	Size *int64 `json:"size"` // null: not told
}

// settingJSON is a setting of the agent as it is, and as it is wanted from the next
// prompt on.
type settingJSON struct {
	ID       string  `json:"id"`
	Name     *string `json:"name"` // null: the agent doesn't offer it
	Category *string `json:"category"`
	Current  *string `json:"current"` // null: the agent hasn't told
	Wanted   *string `json:"wanted"`  // null: nobody wants anything of it
}

func settingsJSON(st *journal.State) []settingJSON {
	out := make([]settingJSON, 0, len(st.Options))
	for _, o := range st.Options {
		wanted, _ := st.Wants(o.ID)
		out = append(out, settingJSON{o.ID, &o.Name, journal.OrNil(o.Category), journal.OrNil(o.Current), journal.OrNil(wanted)})
	}
	for _, w := range st.Wanted {
		if st.Option(w.ID) == nil {
			out = append(out, settingJSON{ID: w.ID, Wanted: &w.Value})
		}
	}
	return out
}

type executionJSON struct {
	ID        string        `json:"id" mask:"-"`
	Worker    string        `json:"worker" mask:"-"`
	Phase     journal.Phase `json:"phase"`
	ExpiresAt string        `json:"expires_at" mask:"-"`
}

func newSessionJSON(s *store.Session) sessionJSON {
	state, since := s.Execution()
	out := sessionJSON{
		ID: s.ID, Title: s.State.Title, Agent: s.State.Agent, Workspace: s.State.Workspace, State: state, StateSince: timeJSON(since),
		LastSeq: s.LastSeq, PendingPrompts: len(s.State.Admitted), PendingPermissions: len(s.State.Pending),
		UnknownCalls: len(s.State.UnknownCalls), UnknownAttempts: len(s.State.UnknownAttempts),
		Usage: s.State.Usage, CreatedAt: timeJSON(s.State.CreatedAt), UpdatedAt: timeJSON(s.UpdatedAt),
	}
	if f := s.State.Forgotten; f != nil {
		out.Forgotten = &forgottenJSON{Reason: f.Reason, How: f.How, MayPass: f.MayPass}
	}
	out.Settings = settingsJSON(&s.State)
	if c := s.State.Context; c != nil {
		out.Context = &contextJSON{Used: c.Used}
		if c.Size > 0 {
			out.Context.Size = &c.Size
		}
	}
	if c := s.Claim; c != nil {
		out.Execution = &executionJSON{ID: c.ExecutionID, Worker: c.WorkerID, Phase: c.Phase, ExpiresAt: timeJSON(c.ExpiresAt)}
	}
	return out
}

type receiptJSON struct {
	ID          string  `json:"id" mask:"-"`
	SessionID   string  `json:"session_id"`
	AdmittedSeq int64   `json:"admitted_seq"`
	PromotedSeq *int64  `json:"promoted_seq"`
	Delivery    *string `json:"delivery" mask:"-"` // null for what isn't a prompt
	State       *string `json:"state" mask:"-"`
	Replayed    bool    `json:"replayed"`
	CreatedAt   string  `json:"created_at" mask:"-"`
}

func newReceiptJSON(r *journal.Receipt) receiptJSON {
	out := receiptJSON{
		ID: r.ID, SessionID: r.SessionID, AdmittedSeq: r.AdmittedSeq, Delivery: journal.OrNil(string(r.Delivery)), State: journal.OrNil(string(r.State)),
		Replayed: r.Replayed, CreatedAt: timeJSON(r.CreatedAt),
	}
	if r.PromotedSeq > 0 {
		out.PromotedSeq = &r.PromotedSeq
	}
	return out
}

type eventJSON struct {
	ID          string          `json:"id" mask:"-"`
	SessionID   string          `json:"session_id"`
	Seq         int64           `json:"seq"`
	Kind        journal.Kind    `json:"kind"`
	Version     int             `json:"version"`
	Time        string          `json:"time" mask:"-"`
	Actor       journal.Actor   `json:"actor"`
	ExecutionID *string         `json:"execution_id"`
	Data        json.RawMessage `json:"data" mask:"-"`
}

// newEventJSON is an event with its body as it is given, cleaned if it has to be.
func newEventJSON(e *journal.Event, data json.RawMessage) eventJSON {
	return eventJSON{
		ID: e.ID, SessionID: e.SessionID, Seq: e.Seq, Kind: e.Kind, Version: e.Version, Time: timeJSON(e.Time),
		Actor: e.Actor, ExecutionID: journal.OrNil(e.ExecutionID), Data: data,
	}
}

type requestJSON struct {
	ID         string               `json:"id" mask:"-"`
	SessionID  string               `json:"session_id"`
	Tool       journal.ToolRef      `json:"tool"`
	Permission string               `json:"permission" mask:"-"`
	Resources  []string             `json:"resources"`
	Always     []string             `json:"always"`
	Digest     string               `json:"digest" mask:"-"`
	Metadata   json.RawMessage      `json:"metadata"`
	State      journal.RequestState `json:"state"`
	AskedAt    string               `json:"asked_at" mask:"-"`
	ExpiresAt  *string              `json:"expires_at" mask:"-"` // requests don't expire by themselves (PER-6)
	Answered   *answerJSON          `json:"answered"`
}

type answerJSON struct {
	Reply   journal.Reply `json:"reply"`
	By      string        `json:"by"`
	At      string        `json:"at" mask:"-"`
	Message string        `json:"message"`
}

func newRequestJSON(r *journal.Request) requestJSON {
	out := requestJSON{
		ID: r.ID, SessionID: r.SessionID, Tool: r.Tool, Permission: r.Permission, Resources: orEmpty(r.Resources), Always: orEmpty(r.Always),
		Digest: r.Digest, Metadata: orNull(r.Metadata), State: r.State, AskedAt: timeJSON(r.AskedAt),
	}
	if r.Reply != "" {
		out.Answered = &answerJSON{Reply: r.Reply, By: r.By, At: timeJSON(r.At), Message: r.Message}
	}
	return out
}

type callJSON struct {
	ID           string             `json:"id" mask:"-"`
	SessionID    string             `json:"session_id"`
	Tool         string             `json:"tool"`
	Input        json.RawMessage    `json:"input"`
	Later        json.RawMessage    `json:"later,omitempty"`
	Effect       journal.Effect     `json:"effect"`
	State        journal.CallState  `json:"state"`
	Resolution   *resolution        `json:"resolution"`
	ExitCode     *int               `json:"exit_code"`
	OutputBytes  int64              `json:"output_bytes"`
	AllowedBy    *journal.AllowedBy `json:"allowed_by"`
	DispatchedAt *string            `json:"dispatched_at" mask:"-"`
	AdoptedAt    *string            `json:"adopted_at" mask:"-"`
	EndedAt      *string            `json:"ended_at" mask:"-"`
	RanMS        *int64             `json:"ran_ms"`
}

func newCallJSON(c *journal.Call) callJSON {
	return callJSON{
		ID: c.ID, SessionID: c.SessionID, Tool: c.Tool, Input: orNull(c.Input), Later: c.Later, Effect: c.Effect, State: c.State, Resolution: newResolution(c.Resolution),
		ExitCode: c.ExitCode, OutputBytes: c.OutputBytes, AllowedBy: c.AllowedBy, DispatchedAt: timeOrNull(c.DispatchedAt), AdoptedAt: timeOrNull(c.AdoptedAt), EndedAt: timeOrNull(c.EndedAt), RanMS: c.RanMS,
	}
}

type resolution struct {
	Outcome  journal.Verdict `json:"outcome"`
	By       string          `json:"by"`
	At       string          `json:"at" mask:"-"`
	Evidence string          `json:"evidence"`
}

func newResolution(r *journal.Resolution) *resolution {
	if r == nil {
		return nil
	}
	return &resolution{r.Outcome, r.By, timeJSON(r.At), r.Evidence}
}

type attemptJSON struct {
	ID         string               `json:"id" mask:"-"`
	SessionID  string               `json:"session_id"`
	State      journal.AttemptState `json:"state"`
	Resolution *string              `json:"resolution" mask:"-"`
}

func newAttemptJSON(a *journal.Attempt) attemptJSON {
	return attemptJSON{ID: a.ID, SessionID: a.SessionID, State: a.State, Resolution: journal.OrNil(string(a.Resolution))}
}

type agentJSON struct {
	Name      string `json:"name" mask:"-"`
	Kind      string `json:"kind" mask:"-"`
	Available bool   `json:"available"`
	Reason    string `json:"reason,omitempty"`

	// What it offered to be set when it last opened a new session of the owner's, as
	// which version, by its own word, and when that was; missing: it hasn't yet.
	Options        []journal.AgentOption `json:"options,omitempty"`
	OptionsVersion string                `json:"options_version,omitempty"`
	OptionsAt      string                `json:"options_at,omitempty" mask:"-"`
}

func newAgentJSON(a store.Agent, offers map[string]store.AgentOffers) agentJSON {
	out := agentJSON{Name: a.Name, Kind: a.Kind, Available: a.Available, Reason: a.Reason}
	if o, known := offers[a.Name]; known {
		out.Options, out.OptionsVersion, out.OptionsAt = o.Options, o.Version, timeJSON(o.At)
	}
	return out
}

type itemsJSON[T any] struct {
	Items []T `json:"items"`
}

type listJSON[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor" mask:"-"`
}

// each makes the shape of each thing; an empty list is [], not null.
func each[T, S any](in []T, shape func(T) S) []S {
	out := make([]S, 0, len(in))
	for _, v := range in {
		out = append(out, shape(v))
	}
	return out
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
