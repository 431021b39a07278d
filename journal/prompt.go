package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Bounds of admission (ADM-10).
const (
	MaxPromptBytes = 256 << 10
	MaxAdmitted    = 200 // inputs of one session that wait for promotion
	MaxKeyLength   = 255
)

// Delivery says when a prompt is promoted (PRO-1).
type Delivery string

// The deliveries.
const (
	Queue Delivery = "queue"
	Steer Delivery = "steer"
)

// InputState is the state of a prompt (ADM-8).
type InputState string

// The states of a prompt.
const (
	InputAdmitted  InputState = "admitted"
	InputPromoted  InputState = "promoted"
	InputWithdrawn InputState = "withdrawn"
)

// Operation is the scope of an idempotency key, the same for form and API (ADM-2).
type Operation string

// The operations that take a key.
const (
	OpCreateSession  Operation = "sessions.create"
	OpCreatePrompt   Operation = "prompts.create"
	OpDecide         Operation = "permissions.decide"
	OpChooseSettings Operation = "settings.choose"
)

// Receipt is the answer to an accepted prompt. It has an address: its key.
type Receipt struct {
	ID          string // the prompt's
	SessionID   string
	AdmittedSeq int64
	PromotedSeq int64 // 0: not promoted
	Delivery    Delivery
	State       InputState
	Replayed    bool
	CreatedAt   int64
}

// LineEnds makes LF of each CRLF. A form sends CRLF for what a program sends as
// LF, and a CR that stays ends no line of a command. Several CRs before an LF,
// left by what was converted twice, are one end: else a CRLF would remain.
func LineEnds(s string) string {
	if !strings.Contains(s, "\r\n") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.Lines(s) {
		rest, whole := strings.CutSuffix(line, "\n")
		if whole {
			rest = strings.TrimRight(rest, "\r") + "\n"
		}
		b.WriteString(rest)
	}
	return b.String()
}

// CheckText refuses what no prompt may be (ADM-10), as LineEnds leaves it.
// Codes: too_large over 256 KiB, unprocessable if empty, with NUL, or not UTF-8.
func CheckText(s string) error {
	s = LineEnds(s)
	switch {
	case len(s) == 0:
		return Errorf(Unprocessable, "The message is empty. Write at least one character.").Typed("empty-text")
	case len(s) > MaxPromptBytes:
		return Errorf(TooLarge, "The message has %d bytes; at most %d are taken. Nothing was recorded. Send it in parts, or put the text into a file of the workspace.", len(s), MaxPromptBytes).Typed("text-too-large")
	case !utf8.ValidString(s):
		return Errorf(Unprocessable, "The message isn't valid UTF-8. Nothing was recorded.").Typed("text-not-utf8")
	case strings.ContainsRune(s, 0):
		return Errorf(Unprocessable, "The message holds a NUL character, which no text may have. Nothing was recorded.").Typed("text-has-nul")
	}
	return nil
}

// DeliveryInterrupt is how a person asks for a steer that the open turn is stopped for.
const DeliveryInterrupt = "interrupt"

// ParseDelivery reads how a prompt is to be delivered, and whether the open turn is
// stopped for it; empty is queue. Code: unprocessable.
func ParseDelivery(s string) (d Delivery, stops bool, err error) {
	switch d := Delivery(s); d {
	case "":
		return Queue, false, nil
	case DeliveryInterrupt:
		return Steer, true, nil
	case Queue, Steer:
		return d, false, nil
	}
	return "", false, Errorf(Unprocessable, "delivery is %q; it must be queue, steer or interrupt.", Cut(s, 40)).Typed("unknown-delivery")
}

// CheckKey reads an idempotency key (ADM-2): 1 to 255 visible ASCII characters
// without blanks; optional quotes around it are not part of it. Code: invalid.
func CheckKey(s string) (string, error) {
	k := s
	if len(k) >= 2 && k[0] == '"' && k[len(k)-1] == '"' {
		k = k[1 : len(k)-1]
	}
	if k == "" {
		return "", Errorf(Invalid, "An Idempotency-Key is needed: 1 to 255 visible ASCII characters, chosen anew for each thing to be done and the same for each retry of it. Nothing was recorded.").Typed("idempotency-key-missing")
	}
	bad := len(k) > MaxKeyLength
	for i := range len(k) {
		bad = bad || k[i] <= ' ' || k[i] > '~'
	}
	if bad {
		return "", Errorf(Invalid, "The Idempotency-Key must be 1 to 255 visible ASCII characters without blanks. Nothing was recorded.").Typed("idempotency-key-malformed")
	}
	return k, nil
}

// PayloadHash is what makes two submissions under one key the same (ADM-3).
// norm is NFC normalisation, given by the caller: the domain has no tables of Unicode.
func PayloadHash(norm func(string) string, parts ...any) string {
	for i, p := range parts {
		if s, ok := p.(string); ok {
			parts[i] = norm(LineEnds(s))
		}
	}
	b, err := json.Marshal(parts)
	if err != nil { // only values that can't be JSON: a fault of the caller
		panic(err)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// Hash is the SHA-256 of s in hex. It makes no copy of it: s may be long.
func Hash[T string | []byte](s T) string {
	h := sha256.New()
	var piece [4 << 10]byte
	for len(s) > 0 {
		n := copy(piece[:], s)
		h.Write(piece[:n])
		s = s[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Cut shortens s to at most n bytes at a character boundary and marks the cut.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
