package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A line has these members in this order. Members without a value are left out; a
// result that is nil is null.
type outgoing struct {
	JSONRPC string `json:"jsonrpc"`
	ID      *ID    `json:"id,omitempty"`
	Method  string `json:"method,omitempty"`
	Params  any    `json:"params,omitempty"`
	Result  *any   `json:"result,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// Request is the line of a request, its line feed included. params may be nil.
func Request(id int64, method string, params any) ([]byte, error) {
	n := NumberID(id)
	return encode("request "+method, outgoing{ID: &n, Method: method, Params: params})
}

// Notify is the line of a notification. params may be nil.
func Notify(method string, params any) ([]byte, error) {
	return encode("notification "+method, outgoing{Method: method, Params: params})
}

// Result is the line that answers a request.
func Result(id ID, result any) ([]byte, error) {
	return encode("answer to "+id.String(), outgoing{ID: &id, Result: &result})
}

// ErrorAnswer is the line that answers a request that fails.
func ErrorAnswer(id ID, code int, message string) ([]byte, error) {
	return encode("error for "+id.String(), outgoing{ID: &id, Error: &Error{Code: code, Message: message}})
}

// encode makes a line. Texts stay as they are, < and & too; line feeds in raw JSON
// are taken out, and in texts they are escaped, so the only one is the last byte.
func encode(what string, o outgoing) ([]byte, error) {
	o.JSONRPC = "2.0"
	line, err := marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", what, err)
	}
	return line, nil
}

// marshal is json.Marshal without the escapes for HTML, and with a line feed.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
