package runner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
	"holdfast/runner/tool"
)

var lineShape = &journal.Shape{Names: wire.Names(), Words: wire.Words(), Free: wire.Open()}

// maskedLine is a line as it is read of an agent that has a value: its shim masks it as
// it comes, in pieces, and the server what is left.
func maskedLine(t *testing.T, value, line string, piece int) (byShim, read string) {
	t.Helper()
	spec := runner.ProcessSpec{Shape: lineShape}
	f := tool.NewJSONFilter(spec.Masks([]string{value}))
	for rest := line + "\n"; rest != ""; {
		n := min(piece, len(rest))
		byShim += f.Write([]byte(rest[:n]))
		rest = rest[n:]
	}
	byShim += f.Flush()
	out, err := journal.NewCleaner(journal.Forms(value)).Shaped([]byte(strings.TrimSuffix(byShim, "\n")), lineShape)
	if err != nil {
		t.Errorf("with %q the line %s is %s: %v", value, line, byShim, err)
	}
	return byShim, string(out)
}

// A value that begins as an escape of JSON goes on, or ends as one begins, leaves a line
// one that can be read.
//
// proves OWN-3
func TestProcessSpec_CutsNoEscape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, text, want string }{
		{"nabcdefgh", `\nabcdefgh`, `\nabcdefgh`},
		{"nabcdefgh", `\\nabcdefgh`, `\\[hidden]`},
		{"nabcdefgh", `\u006eabcdefgh nabcdefgh`, `[hidden] [hidden]`},
		{"u00e9abcdefgh", `\u00e9abcdefgh u00e9abcdefgh`, `\u00e9abcdefgh [hidden]`},
		{"e9abcdefgh", `\u00e9abcdefgh`, `\u00e9abcdefgh`},
		{`abcdefgh\`, `abcdefgh\"`, `abcdefgh\"`},
		{`abcdefgh\`, `abcdefgh\\ abcdefgh\\`, `[hidden] [hidden]`},
		{`abcdefgh\u00`, `abcdefgh\u00e9`, `abcdefgh\u00e9`},
		{"nananana", `\nanananana`, `\na[hidden]`},
	} {
		for _, piece := range []int{1, 3, 1000} {
			line := `{"method":"session/update","params":{"text":"` + c.text + `"}}`
			_, got := maskedLine(t, c.value, line, piece)
			var want, read any
			if err := json.Unmarshal([]byte(got), &read); err != nil {
				t.Errorf("with %q in pieces of %d the line is %s: %v", c.value, piece, got, err)
				continue
			}
			if err := json.Unmarshal([]byte(`{"method":"session/update","params":{"text":"`+c.want+`"}}`), &want); err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(read) != fmt.Sprint(want) {
				t.Errorf("with %q in pieces of %d the line is %s, want %s", c.value, piece, got, c.want)
			}
		}
	}
	// What isn't JSON has no escapes.
	f := tool.NewJSONFilter([]string{"nabcdefgh"})
	if got := f.Write([]byte(`log: C:\nabcdefgh`)) + f.Flush(); got != `log: C:\[hidden]` {
		t.Errorf("a line that isn't JSON is %q", got)
	}
}

// For whatever value and line of JSON: the line can be read afterwards, and no text in it
// has the value.
//
// proves OWN-3 JRN-8
func FuzzProcessSpec_KeepsLinesReadable(f *testing.F) {
	for seed := range uint64(3000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible
		value := randomText(r, 8+r.IntN(5))
		line := `{"jsonrpc":"2.0","method":"session/update","params":` + randomJSON(r, value, 3) + "}"
		if !json.Valid([]byte(line)) {
			t.Fatalf("the test made %s", line)
		}
		byShim, got := maskedLine(t, value, line, 1+r.IntN(40))
		var read any
		if err := json.Unmarshal([]byte(got), &read); err != nil || !json.Valid([]byte(byShim)) {
			t.Fatalf("with %q the line %s is %s, and read %s: %v", value, line, byShim, got, err)
		}
		eachText(read, func(s string) {
			if strings.Contains(s, value) {
				t.Errorf("with %q the line %s is read %s", value, line, got)
			}
		})
	})
}

// Such as values and escapes are made of.
var bits = []string{`\`, `\`, `"`, "/", "u", "u00", "e9", "n", "t", "b", "0", "a", "d83d", "é", "<", ":", "{", ",", " x"}

// randomText is one that could be stored: not all of a number, one line, no blanks around.
func randomText(r *rand.Rand, bytes int) string {
	out := ""
	for len(out) < bytes {
		out = strings.TrimSpace(out + bits[r.IntN(len(bits))])
	}
	return out
}

func randomJSON(r *rand.Rand, value string, depth int) string {
	switch kind := r.IntN(6); {
	case depth > 0 && kind == 0:
		return "[" + randomJSON(r, value, depth-1) + "," + randomJSON(r, value, depth-1) + "]"
	case depth > 0 && kind < 4:
		names := []string{"text", "rawInput", "update", "_meta", "mine"}
		return `{"` + names[r.IntN(len(names))] + `":` + randomJSON(r, value, depth-1) + `, "other" : ` + randomJSON(r, value, depth-1) + "}"
	case kind == 4:
		return []string{"1.5e10", "null", "true", "-7"}[r.IntN(4)]
	}
	text := ""
	for range r.IntN(6) {
		switch r.IntN(3) {
		case 0:
			text += value
		case 1:
			text += value[:r.IntN(len(value))]
		default:
			text += randomText(r, 3)
		}
	}
	return spelt(r, strings.ToValidUTF8(text, ""))
}

// spelt is a text in JSON, in the one or the other escapes.
func spelt(r *rand.Rand, text string) string {
	out := `"`
	for _, c := range text {
		short := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`}[c]
		switch {
		case r.IntN(6) == 0:
			out += fmt.Sprintf(`\u%04x`, c)
		case short != "" && (c != '/' || r.IntN(2) == 0):
			out += short
		default:
			out += string(c)
		}
		if r.IntN(12) == 0 {
			out += []string{`\n`, `\t`, `\u00e9`, `\ud83d\ude00`}[r.IntN(4)]
		}
	}
	return out + `"`
}

func eachText(v any, do func(string)) {
	switch v := v.(type) {
	case string:
		do(v)
	case []any:
		for _, w := range v {
			eachText(w, do)
		}
	case map[string]any:
		for _, w := range v {
			eachText(w, do)
		}
	}
}
