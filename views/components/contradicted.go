package components

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"holdfast/journal"
)

// contradicted draws that an agent says something else of its call than what was asked,
// or let run. texts have what lies in a blob, by its hash.
func contradicted(b *journal.CallContradicted, c *journal.Call, name Word, texts map[string]string) Entry {
	said := Payload{}
	if c != nil {
		now := journal.Call{AttemptID: c.AttemptID, Input: b.Input, InputSHA256: b.InputSHA256}
		if ref, elsewhere := journal.InputBlob(b.Input, b.InputSHA256); elsewhere && texts[ref.Blob] != "" {
			now.Input = json.RawMessage(texts[ref.Blob])
		}
		said = CallPayload(&now)
	}
	e := Entry{Class: "bad", Icon: "ask", Title: Say("The agent says something else of its call now: ", Code(said.Title()))}
	if b.Late == journal.LateDispatched {
		e.Lines = []Phrase{Say("That is not what was let run: ", name, ". What the agent really did can’t be told from here. ", Link(CallPath(b.CallID), "Compare the two"))}
		if c != nil && said.Title() == name.Text {
			e.Lines = append(e.Lines, differences(CallPayload(c), said)...)
		}
		return e
	}
	e.Lines = []Phrase{Say("That is not what was asked before. An answer to what was asked before doesn’t allow it. ", Link(CallPath(b.CallID), "Read the call"))}
	return e
}

// mostDifferences are told where two descriptions of a call read alike: its page has all.
const mostDifferences = 3

// differences are what two descriptions of a call that are called the same differ in.
func differences(was, now Payload) []Phrase {
	before, after := was.members(), now.members()
	var out []Phrase
	for _, name := range slices.Sorted(maps.Keys(names(before, after))) {
		if before[name] == after[name] {
			continue
		}
		if len(out) == mostDifferences {
			return append(out, Say("More than that differs."))
		}
		w, n := fromWhereTheyDiffer(before[name], after[name])
		out = append(out, Say("It differs in ", Code(name), ": ", sayOr(n, "nothing"), " now, ", sayOr(w, "nothing"), " when it was let run."))
	}
	return out
}

// members are all that a payload says, under the names that it has.
func (p Payload) members() map[string]string {
	out := map[string]string{"kind": p.Tool}
	text := "what it would do"
	if p.Diff != nil {
		text = "its change"
	}
	out[text] = p.Text
	if p.Runs != "" {
		out["what it would run"] = p.Runs
	}
	for _, f := range slices.Concat(p.Facts, p.Said) {
		out[f.Name] = f.Value
	}
	return out
}

func names(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// sayOr is a text of the agent, or what stands for none.
func sayOr(text, none string) any {
	if text == "" {
		return none
	}
	return Code(text)
}

// fromWhereTheyDiffer cuts what two texts begin with both, where it would be all that a line
// shows of them.
func fromWhereTheyDiffer(a, b string) (string, string) {
	const most, around = 80, 20
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if n < most {
		return a, b
	}
	from := n - around
	for from > 0 && !utf8.RuneStart(a[from]) {
		from--
	}
	return "…" + a[from:], "…" + b[from:]
}

// LaterPayload is what an agent said of a call after it was let run; false: nothing.
func LaterPayload(c *journal.Call) (Payload, bool) {
	if c.Later == nil {
		return Payload{}, false
	}
	return CallPayload(&journal.Call{AttemptID: c.AttemptID, Input: c.Later}), true
}
