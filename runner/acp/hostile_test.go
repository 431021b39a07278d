package acp

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/runner/acp/wire"
)

// hostileBytes is how long the lines of these tests are.
const hostileBytes = 2 << 20

// many is a text that is repeated, with its number in the place of #, until it is long.
func many(s string, bytes int) string {
	var b strings.Builder
	for n := 0; b.Len() < bytes; n++ {
		b.WriteString(strings.ReplaceAll(s, "#", fmt.Sprint(n)))
	}
	return b.String()
}

// An agent chooses how a line of its is built. Whatever it is, what is done with it takes
// not much more memory and time than with a line that is one text.
//
// proves COO-4
func TestHostileLines(t *testing.T) { // alone: what is allocated is counted for the process
	const n = hostileBytes
	input := func(in string) string { return `"rawInput":` + in }
	list := func(of string) string { return strings.TrimSuffix(many(of+",", n), ",") }
	const plain = "one text"
	lines := map[string]string{}
	for name, members := range map[string]string{
		plain:                        input(`{"command":"ls","x":"` + strings.Repeat("y", n) + `"}`),
		"members":                    input(`{"command":"ls",` + list(`"k#":"v#"`) + `}`),
		"members that run something": input(`{` + list(`"k#":1`) + `,"script":"x","code":"y"}`),
		"one member again and again": input(`{"command":"ls",` + list(`"args":"#"`) + `}`),
		"texts":                      input(`{"command":"ls","x":[` + list(`"t#"`) + `]}`),
		"other texts":                input(`{"command":"ls","x":[` + list(`"#-t"`) + `]}`),
		"numbers":                    input(`[` + list(`1`) + `]`),
		"lists":                      input(`{"x":[` + list(`[]`) + `]}`),
		"deep":                       input(`{"command":"ls","x":` + strings.Repeat("[", 9900) + `"` + strings.Repeat("y", n) + `"` + strings.Repeat("]", 9900) + `}`),
		"deep members":               input(strings.Repeat(`{"a":`, 9900) + `"` + strings.Repeat("y", n) + `"` + strings.Repeat("}", 9900)),
		"deep outside":               `"x":` + strings.Repeat("[", 9900) + `"\u0000` + strings.Repeat("y", n) + `"` + strings.Repeat("]", 9900),
		"escapes":                    input(`{"command":"ls","x":"` + strings.Repeat(`\n`, n/2) + `"}`),
		"escaped letters":            input(`{"command":"ls","x":"` + strings.Repeat(`\u0041`, n/6) + `"}`),
		"command of brackets":        input(`{"command":"` + strings.Repeat("(", n) + `"}`),
		"command of substitutions":   input(`{"command":"` + strings.Repeat("$(", n/2) + `"}`),
		"command of commands":        input(`{"command":"` + many("a# && ", n) + `x"}`),
		"command of commands, short": input(`{"command":"` + many("a#; ", 60<<10) + `x"}`),
		"command of patterns, short": input(`{"command":"ls ` + many("*a#*/b? ", 60<<10) + `x"}`),
		"path":                       `"kind":"edit",` + input(`{"file_path":"`+strings.Repeat("a/", n/2)+`"}`),
		"long name of texts":         `"kind":"read",` + input(`{"`+strings.Repeat("a_", n/4)+`":[`+strings.TrimSuffix(many(`"t#",`, n/2), ",")+`]}`),
		"long name of members":       `"kind":"edit",` + input(`{"`+strings.Repeat("a_", n/4)+`":{`+strings.TrimSuffix(many(`"t#":"u",`, n/2), ",")+`}}`),
		"members inside":             `"kind":"read",` + input(`{"x":[`+list(`{"command":"#"}`)+`]}`),
		"paths":                      `"kind":"read",` + input(`{"paths":[`+list(`"a#/../b"`)+`]}`),
		"numbers read":               `"kind":"read",` + input(`{"x":[`+list(`1`)+`]}`),
		"lists read":                 `"kind":"read",` + input(`{"x":[`+list(`[]`)+`]}`),
		"deep commands":              `"kind":"read",` + input(strings.Repeat(`{"command":`, 9900)+`"`+strings.Repeat("y", n)+`"`+strings.Repeat("}", 9900)),
		"patch":                      `"kind":"edit",` + input(`{"file_path":"a","patch":"`+many(`--- a/x#\n+++ b/x#\n`, n)+`"}`),
		"diffs of whole files":       `"kind":"edit","content":[` + list(`{"type":"diff","path":"a#","newText":"y"}`) + `]`,
		"last newline":               `"kind":"edit","content":[{"type":"diff","path":"a","oldText":"` + many(`o#\n`, n/2) + `","newText":"` + many(`o#\n`, n/2) + `x"}]`,
		"url":                        `"kind":"fetch",` + input(`{"url":"http://`+strings.Repeat("a", n)+`/"}`),
		"places":                     `"kind":"edit","locations":[` + strings.TrimSuffix(strings.Repeat(`{"path":"`+strings.Repeat("a", n/10000)+`"},`, 9999), ",") + `]`,
		"diffs":                      `"kind":"edit","content":[` + strings.TrimSuffix(many(`{"type":"diff","path":"a#","oldText":"`+strings.Repeat("x", n/20000)+`","newText":"`+strings.Repeat("y", n/20000)+`"},`, n), ",") + `]`,
		"diff of lines":              `"kind":"edit","content":[{"type":"diff","path":"a","oldText":"` + many(`o#\n`, n/2) + `","newText":"` + many(`n#\n`, n/2) + `"}]`,
		"diff of empty lines":        `"kind":"edit","content":[{"type":"diff","path":"a","oldText":"` + strings.Repeat(`\n`, n/4) + `x","newText":"` + strings.Repeat(`\n`, n/4) + `y"}]`,
		"diff and its parts":         `"kind":"edit",` + input(`{"old_string":"`+many(`p#\n`, n/4)+`","new_string":"`+many(`q#\n`, n/4)+`"}`) + `,"content":[{"type":"diff","path":"a","oldText":"","newText":"` + many(`z#\n`, n/2) + `"}]`,
	} {
		lines[name] = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"a","title":"A\u0042",` + members + `}}}`
	}
	cost(t, lines[plain]) // what is made once is made
	took, _ := cost(t, lines[plain])
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			d, bytes := cost(t, line)
			t.Logf("%d KB in %v, %d times its bytes allocated", len(line)>>10, d.Round(time.Millisecond), bytes/len(line))
			if d > mostSlower*took {
				t.Errorf("it takes %v, and a line that is one text %v", d, took)
			}
			if bytes > mostTimes*max(len(line), hostileBytes) {
				t.Errorf("%d MB are allocated for %d KB", bytes>>20, len(line)>>10)
			}
		})
	}
}

// What a line may cost: of the time that a plain one of the same length takes, and of its
// bytes, most of which are garbage at once. What grows with the square of a line is far
// past both.
const (
	mostSlower = 60
	mostTimes  = 200
)

// cost is what all that is done with a line takes, and allocates.
func cost(t *testing.T, line string) (took time.Duration, bytes int) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	work(t, []byte(line))
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return took, int(after.TotalAlloc - before.TotalAlloc) //nolint:gosec // it fits
}

// work does with a line what is done with one that tells of a call which is asked for,
// was asked for as something else, and is told anew.
func work(t *testing.T, line []byte) {
	t.Helper()
	clean := journal.NewCleaner([]string{"a-secret-value", "another-secret"})
	line = clean.Line(wire.Kept(line), shape)
	clean.Line(line[:len(line)-1], shape) // cut off: it isn't JSON
	m, err := wire.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	_, u := wire.ParseUpdate(m.Params)
	call, ok := u.(wire.ToolCall)
	if !ok {
		t.Fatalf("it is a %T", u)
	}
	is := told{}.with(&call)
	input, err := journal.Encode(is)
	if err != nil {
		t.Fatal(err)
	}
	var was told
	if err := json.Unmarshal(input, &was); err != nil || !same(is, was) || !was.covers(&is, "/w") {
		t.Errorf("what is told again isn't what was told: %v", err)
	}
	effect(is)
	other := told{Title: "other", Kind: "edit", Input: json.RawMessage(`{"command":"ls","old_string":"x","new_string":"` + many(`w#\n`, 100<<10) + `"}`)}
	other.covers(&is, "/w")
	is.covers(&other, "/w")
	w := is.wish("/nowhere")
	resources := each(append(w.Resources, other.wish("/nowhere").Resources...))
	policy.Evaluate(policy.Workspace, nil, resources)
	asked := 0
	for _, r := range resources {
		asked += len(r.Value)
	}
	if asked > journal.MaxEventBody/2 || len(w.Diff) > 4*hostileBytes {
		t.Errorf("%d resources of %d bytes are asked, which no event has room for, and a change of %d bytes", len(resources), asked, len(w.Diff))
	}
}
