package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// mark stands in the place of what can't be kept.
type mark string

const notKept mark = "[not kept] "

// Unkept reports whether a text is, or holds, what stands in the place of an id that
// can't be kept: see Kept.
func Unkept(text string) bool { return strings.Contains(text, string(notKept)) }

// ids are the members by which something is meant that an agent is told again, or of
// which there may be several.
var ids = map[string]bool{
	"id": true, "sessionId": true, "toolCallId": true, "messageId": true, "compactionId": true, "requestId": true, "optionId": true,
	"value": true, "currentValue": true, "modelId": true, "currentModelId": true, "currentModeId": true,
}

// Kept is a line as it can be kept and told again: an id in it that isn't text (it has
// a NUL, half of a pair of surrogates, or what isn't UTF-8) is replaced by a mark
// and a digest of it. So it is never taken for another id, nor told changed. A line without
// such an id, and what isn't JSON, is given back as it is.
func Kept(line []byte) []byte {
	if utf8.Valid(line) && !suspicious(line) || !json.Valid(line) {
		return line
	}
	return kept(line)
}

// suspicious reports whether a line may have an id that can't be kept.
func suspicious(line []byte) bool {
	for _, s := range []string{`\u0000`, `\ud`, `\uD`, `\uf`, `\uF`, "\uFFFD", string(notKept)} {
		if bytes.Contains(line, []byte(s)) {
			return true
		}
	}
	return false
}

// kept goes over a line once, however deep it is nested.
func kept(line []byte) []byte {
	s := scanner{b: line}
	var out []byte
	copied, name := 0, "" // name is that of the member whose value comes
	for s.i < len(line) {
		switch c := line[s.i]; {
		case isBlank(c):
			s.i++
		case c != '"':
			name = ""
			s.i++
		default:
			start := s.i
			s.text()
			raw := line[start:s.i]
			if s.take(':') {
				if name = nameOf(raw); openMembers[name] {
					s.value()
					name = ""
				}
				continue
			}
			if ids[name] {
				if text := unquote(raw); !isKept(text) {
					out = append(append(out, line[copied:start]...), unkept(raw, text)...)
					copied = start + len(raw)
				}
			}
			name = ""
		}
	}
	if copied == 0 {
		return line
	}
	return append(out, line[copied:]...)
}

// longestName is more than the name of any member of the protocol takes, however it is spelt.
const longestName = 200

// nameOf is the name of a member; of one that is longer than any of the protocol "".
func nameOf(raw []byte) string {
	if len(raw) > longestName {
		return ""
	}
	return unquote(raw)
}

var openMembers = Open()

func isKept(id string) bool {
	return !strings.ContainsAny(id, "\x00\uFFFD") && !Unkept(id)
}

// unkept is what stands in the place of an id: the same for the same id, however it is
// spelt as long as it can be read, and another for another.
func unkept(raw []byte, id string) []byte {
	of := []byte(id)
	if strings.Contains(id, "\uFFFD") { // what was there can't be told from the text
		of = raw
	}
	sum := sha256.Sum256(of)
	return []byte(`"` + string(notKept) + hex.EncodeToString(sum[:16]) + `"`)
}
