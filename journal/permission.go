package journal

import "encoding/json"

// Reply is a person's answer to a request (PER-2).
type Reply string

// The replies.
const (
	ReplyOnce   Reply = "once"
	ReplyAlways Reply = "always"
	ReplyReject Reply = "reject"
)

// RequestState is the state of a permission request.
type RequestState string

// The states of a request (docs: permissions).
const (
	RequestPending              RequestState = "pending"
	RequestApprovedOnce         RequestState = "approved_once"
	RequestApprovedAlways       RequestState = "approved_always"
	RequestRejected             RequestState = "rejected"
	RequestRejectedWithFeedback RequestState = "rejected_with_feedback"
	RequestExpired              RequestState = "expired"
	RequestCancelled            RequestState = "cancelled"
	RequestSuperseded           RequestState = "superseded"
)

// Request is a question to a person; it is durable from the moment that it is asked (PER-1).
type Request struct {
	ID, SessionID string
	Tool          ToolRef
	Permission    string
	Resources     []string
	Always        []string
	Digest        string
	Metadata      json.RawMessage
	State         RequestState
	AskedAt       int64
	AskedSeq      int64
	Reason        string // why it was cancelled
	Reply         Reply
	By            string
	At            int64
	Message       string
}

// NewRequest is the request that an event asks.
func NewRequest(ev *Event, b *PermissionAsked) *Request {
	return &Request{
		ID: b.ID, SessionID: ev.SessionID, Tool: b.Tool, Permission: b.Permission, Resources: b.Resources, Always: b.Always,
		Digest: b.Digest, Metadata: b.Metadata, State: RequestPending, AskedAt: ev.Time, AskedSeq: ev.Seq,
	}
}

// Ended reports whether the request can't be answered although nobody answered it.
func (r *Request) Ended() bool {
	return r.State == RequestCancelled || r.State == RequestExpired || r.State == RequestSuperseded
}

// Apply moves the request by one event: the first answer wins (PER-2). Codes:
// conflict naming the first answer, gone if it was cancelled.
func (r *Request) Apply(ev *Event, body Body) error {
	switch b := body.(type) {
	case *PermissionReplied:
		if err := r.answerable(); err != nil {
			return err
		}
		r.Reply, r.By, r.At, r.Message = b.Reply, b.By, ev.Time, b.Message
		r.State = b.state()
	case *PermissionCancelled:
		if r.State != RequestPending {
			return Errorf(Conflict, "The request is %s.", r.State).Typed("request-state").With("state", r.State)
		}
		r.State, r.Reason = RequestCancelled, b.Reason
	}
	return nil
}

func (r *Request) answerable() error {
	switch {
	case r.State == RequestPending:
		return nil
	case r.Ended():
		return Errorf(Gone, "This request ended (%s), so it can't be answered. Nothing was run because of it. If the agent still wants this, it will ask again.", orWord(WhyEnded(r.Reason), string(r.State))).
			Typed("request-ended").With("state", r.State).With("reason", r.Reason)
	}
	return Errorf(Conflict, "Somebody answered this request already (%s). Your answer was not recorded.", r.Reply).
		Typed("already-answered").With("state", r.State).
		With("answered", map[string]any{"reply": r.Reply, "by": r.By, "at": r.At, "message": r.Message})
}

// WhyEnded says in words why a request has ended that nobody has answered.
func WhyEnded(reason string) string {
	switch reason {
	case ReasonInterrupted:
		return "the turn was stopped"
	case ReasonRejected:
		return "another request was denied, which stopped the turn"
	}
	return reason
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

func (b *PermissionReplied) state() RequestState {
	switch b.Reply {
	case ReplyOnce:
		return RequestApprovedOnce
	case ReplyAlways:
		return RequestApprovedAlways
	case ReplyReject:
		if b.Message != "" {
			return RequestRejectedWithFeedback
		}
	}
	return RequestRejected
}
