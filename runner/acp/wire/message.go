package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what a message is.
type Kind string

// The kinds of messages.
const (
	KindRequest      Kind = "request"      // wants an answer with its id
	KindNotification Kind = "notification" // has no id
	KindResponse     Kind = "response"     // answers the request of its id
)

// Methods of the protocol that a client sends or is sent.
const (
	MethodInitialize        = "initialize"
	MethodAuthenticate      = "authenticate"
	MethodSessionNew        = "session/new"
	MethodSessionLoad       = "session/load"
	MethodSessionResume     = "session/resume"
	MethodSessionList       = "session/list"
	MethodSessionDelete     = "session/delete"
	MethodSessionPrompt     = "session/prompt"
	MethodSessionCancel     = "session/cancel" // a notification
	MethodSetMode           = "session/set_mode"
	MethodSetConfigOption   = "session/set_config_option"
	MethodSetModel          = "session/set_model" // of agents from before config options
	MethodSessionUpdate     = "session/update"    // a notification, of the agent
	MethodRequestPermission = "session/request_permission"
	MethodCancelRequest     = "$/cancel_request" // a notification, both ways
)

// Codes of errors.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeAuthRequired   = -32000
	CodeNotFound       = -32002 // a session, a file; some agents say CodeInternal
	CodeCancelled      = -32800 // what a cancelled request may be answered
)

// ErrNotACP marks what an agent sent that isn't what the protocol says. The text of
// an error that wraps it may be shown to people.
var ErrNotACP = errors.New("not a message of ACP")

// Message is one line that was understood. Its fields share the line's memory.
type Message struct {
	Kind   Kind
	ID     ID              // of a request and a response
	Method string          // of a request and a notification
	Params json.RawMessage // of those; nil where there are none, or null
	Result json.RawMessage // of a response without Err; it may be null
	Err    *Error          // of a response: the request has failed
	Raw    []byte          // the whole line
}

// Error is the answer to a request that has failed.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error is the code and the agent's message.
func (e *Error) Error() string {
	return fmt.Sprintf("the agent answered error %d: %s", e.Code, e.Message)
}

// ID is the id of a request, as the JSON that its sender chose. Two are equal (==)
// if they are the same bytes: 0 is an id, and 1 is neither "1" nor 1.0. The zero
// value is none.
type ID struct{ raw string }

// NumberID is the id of a request that was made with Request.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// String is the JSON of an id; of none it is null.
func (id ID) String() string {
	if id.raw == "" {
		return "null"
	}
	return id.raw
}

// Read is the id as whoever reads it understands it: "a" however its letters are written,
// and 1 also for 1.0. Two that are equal so may be taken for one. It is to compare with;
// an id is told as it was.
func (id ID) Read() ID {
	switch {
	case strings.HasPrefix(id.raw, `"`):
		if text, err := json.Marshal(unquote([]byte(id.raw))); err == nil {
			return ID{string(text)}
		}
	case strings.ContainsAny(id.raw, ".eE") || id.raw == "-0":
		const exact = 1 << 53 // up to which each whole number is one of its own
		if f, err := strconv.ParseFloat(id.raw, 64); err == nil && f == math.Trunc(f) && math.Abs(f) <= exact {
			return NumberID(int64(f))
		}
	}
	return id
}

// MarshalJSON is the id as it was.
func (id ID) MarshalJSON() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalJSON takes a number, a string or null.
func (id *ID) UnmarshalJSON(raw []byte) error {
	if !isNull(raw) && !strings.ContainsRune(`"-0123456789`, rune(raw[0])) {
		return fmt.Errorf("no id: %s", Excerpt(raw))
	}
	id.raw = string(raw)
	return nil
}

// envelope is the members of a line: nil where there is none, or it is null and that
// says nothing.
type envelope struct{ jsonrpc, id, method, params, result, err json.RawMessage }

// Parse reads one line. The error is ErrNotACP, with the beginning of the line in a
// form that may be shown.
//
// A member jsonrpc may be missing. A member error that is null counts as none, and so
// does a result that is null beside an error. What an error holds is taken as far as
// it can be read: that its request has failed is certain.
func Parse(line []byte) (Message, error) {
	m, why := parse(line)
	if why != "" {
		return Message{}, fmt.Errorf("%w: %s: %s", ErrNotACP, why, Excerpt(line))
	}
	return m, nil
}

// parse returns why a line is no message, or "".
func parse(line []byte) (m Message, why string) {
	if !json.Valid(line) {
		return m, "the line is not JSON"
	}
	var e envelope
	if !eachMember(line, e.take) {
		return m, "the line is not a JSON object"
	}
	if e.jsonrpc != nil && unquote(e.jsonrpc) != "2.0" {
		return m, `its member jsonrpc is not "2.0"`
	}
	m = Message{Params: e.params, Raw: line}
	if e.id != nil && m.ID.UnmarshalJSON(e.id) != nil {
		return m, "its id is neither a number nor a string"
	}
	if e.method != nil {
		return m.call(e)
	}
	return m.response(e)
}

func (e *envelope) take(name string, value json.RawMessage) {
	something := value
	if isNull(value) {
		something = nil
	}
	switch name {
	case "jsonrpc":
		e.jsonrpc = something
	case "id":
		e.id = value
	case "method":
		e.method = something
	case "params":
		e.params = something
	case "result":
		e.result = value
	case "error":
		e.err = something
	}
}

// call completes a request or a notification.
func (m Message) call(e envelope) (Message, string) {
	switch {
	case e.method[0] != '"':
		return m, "its method is not a text"
	case e.result != nil || e.err != nil:
		return m, "it is both a request and an answer"
	}
	m.Method = unquote(e.method)
	m.Kind = KindRequest
	if e.id == nil {
		m.Kind = KindNotification
	}
	return m, ""
}

// response completes an answer.
func (m Message) response(e envelope) (Message, string) {
	m.Kind = KindResponse
	switch {
	case e.result == nil && e.err == nil:
		return m, "it has neither a method nor a result nor an error"
	case !isNull(e.result) && e.err != nil:
		return m, "it has both a result and an error"
	case e.id == nil:
		return m, "it answers without an id"
	case e.err != nil:
		m.Err = readError(e.err)
	default:
		m.Result = e.result
	}
	return m, ""
}

// readError takes what it can; an error that is no object is all data.
func readError(raw json.RawMessage) *Error {
	if !isObject(raw) {
		return &Error{Data: raw}
	}
	return &Error{
		Code:    number(member(raw, "code")),
		Message: unquote(member(raw, "message")),
		Data:    member(raw, "data"),
	}
}

// number is the value of a whole number; of anything else it is 0.
func number(raw json.RawMessage) int {
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0
	}
	return n
}

// excerptBytes bounds what is shown of a line.
const excerptBytes = 200

// Excerpt is the beginning of what an agent sent, in one line that may be shown:
// whole characters, and what isn't visible by its number.
func Excerpt(raw []byte) string {
	var b strings.Builder
	for len(raw) > 0 {
		if b.Len() >= excerptBytes {
			return b.String() + "…"
		}
		r, n := utf8.DecodeRune(raw)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, raw[0])
		case unicode.IsGraphic(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		raw = raw[n:]
	}
	return b.String()
}
