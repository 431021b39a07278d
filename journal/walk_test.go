package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A line is cleaned where it stands, and means what it would if its values were built and
// each of them cleaned.
//
// proves OWN-3 JRN-8
func TestCleaner_LineAsItsValues(t *testing.T) {
	t.Parallel()
	c := NewCleaner([]string{`sk-"ant/0123456789`, "12345678", "p\u00e4ss-w\n0rd", "end_turn", "title"})
	shape := &Shape{Names: map[string]bool{"id": true, "free": true, "title": true, "kind": true}, Words: map[string][]string{"kind": {"end_turn"}}, Free: map[string]bool{"free": true}, Whole: map[string]bool{"id": true}}
	dirty := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret comes of it
		line := anyValue(r, 0)
		if !json.Valid([]byte(line)) {
			t.Fatalf("%s isn't JSON", line)
		}
		for _, as := range []*Shape{nil, shape} {
			want, got := valuesOf(t, line), valuesOf(t, string(c.Line([]byte(line), as)))
			want = built(c, "", want, as)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s became\n%v, want\n%v", line, got, want)
			}
			if !reflect.DeepEqual(want, valuesOf(t, line)) {
				dirty++
			}
		}
	}
	if dirty < 1000 {
		t.Errorf("only %d lines had anything to clean", dirty)
	}
}

// anyValue is JSON of any form, with parts of what is secret in any spelling.
func anyValue(r *rand.Rand, depth int) string {
	blank := strings.Repeat(" ", r.IntN(2)) + strings.Repeat("\t\r\n", r.IntN(2))
	switch n := r.IntN(8); {
	case n < 2 && depth < 4:
		var list []string
		for range r.IntN(4) {
			list = append(list, anyValue(r, depth+1))
		}
		return blank + "[" + strings.Join(list, ",") + blank + "]"
	case n < 5 && depth < 4:
		var list []string
		for i := range r.IntN(4) {
			name := []string{`"id"`, `"free"`, `"t\u0069tle"`, `"kind"`}[i]
			if r.IntN(3) == 0 {
				name = fmt.Sprintf(`"%d`, i) + anyText(r)[1:]
			}
			list = append(list, blank+name+blank+":"+anyValue(r, depth+1))
		}
		return "{" + strings.Join(list, ",") + blank + "}" + blank
	case n == 5:
		return []string{"12345678", "-1.5e+3", "912345678.5", "true", "false", "null", "0"}[r.IntN(7)]
	}
	return anyText(r)
}

func anyText(r *rand.Rand) string {
	out := `"`
	for range r.IntN(5) {
		out += []string{`sk-\"ant\/0123456789`, `sk-\u0022ant/0123`, `s\u006b-\"ant/`, `12345678`, `1234\u0000\u0035678`, `p\u00e4ss-w\n`, `päss-w\u000a0rd`, `end_turn`, `\ud83d\ude00`, `\ud83d`, `\\u0041`, `\\`, `x`, `}`, "`"}[r.IntN(15)]
	}
	return out + `"`
}

// built cleans a value that was built, each text of it by itself.
func built(c *Cleaner, member string, v any, shape *Shape) any {
	switch v := v.(type) {
	case string:
		if shape != nil && slices.Contains(shape.Words[member], v) {
			return v
		}
		if s := c.Text(v); shape != nil && shape.Whole[member] {
			return s
		}
		return c.Unended(v)
	case json.Number:
		if s := c.Bytes(v.String()); shape == nil && s != v.String() {
			return s
		}
	case []any:
		for i := range v {
			v[i] = built(c, "", v[i], shape)
		}
	case map[string]any:
		out := map[string]any{}
		for name, w := range v {
			in, to := shape, name
			if shape == nil || !shape.Names[name] {
				to = c.Text(name)
			}
			if shape != nil && shape.Free[name] {
				in = nil
			}
			out[to] = built(c, name, w, in)
		}
		return out
	}
	return v
}

func valuesOf(t *testing.T, line string) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(line)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

// To clean a line takes a few times its bytes, whatever it is built of, spelt as, and hides.
//
// proves COO-4 OWN-3
func TestCleaner_LineCostsLittle(t *testing.T) { // alone: what is allocated is counted for the process
	c := NewCleaner([]string{"a-secret-value", "another-secret"})
	const most = 8 // times its bytes
	for name, of := range map[string]string{
		"lists": `[]`, "numbers": `1`, "texts": `"t"`, "members": `{"a":"b"}`, "escapes": `"\n\t\\"`, "escaped letters": `"\u0041\u00e4\u4e00"`, "halves": `"\ud83d\ude00\ud83d"`,
	} {
		for _, with := range []string{"", `"a secret: a-secret-value"`, `"\u0061-secret-value"`, `"another-sec"`, `"\u0000"`} {
			line := []byte("[" + strings.Repeat(of+",", 1<<20/len(of)) + `"` + strings.Repeat(`\u0078`, 1<<16) + `",` + with)
			line = append(bytes.TrimSuffix(line, []byte(",")), ']')
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			out := c.Line(line, nil)
			runtime.ReadMemStats(&after)
			if len(out) < len(line)/2 || bytes.Contains(out, []byte("secret-value")) || bytes.Contains(out, []byte("another-sec")) {
				t.Errorf("%s with %s became %d bytes, ending in %q", name, with, len(out), out[len(out)-40:])
			}
			if is := (after.TotalAlloc - before.TotalAlloc) / uint64(len(line)); is > most {
				t.Errorf("%s with %s: %d times its bytes are allocated", name, with, is)
			} else {
				t.Logf("%s with %s: %d times", name, with, is)
			}
		}
	}
}

// However long a value is, a secret is found at each place of it, however it is spelt.
//
// proves OWN-3
func TestCleaner_LongValues(t *testing.T) {
	t.Parallel()
	const secret = "g\U0001F642st-\"s3cr3t-value\""
	encoded, err := Encode(secret)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCleaner([]string{secret, "another-secret"})
	for _, spelt := range []string{string(encoded[1 : len(encoded)-1]), `\u0067\ud83d\ude42st-\u0022s3cr3t-v\u0061lue\"`} {
		for _, edge := range []int{lookedBytes, 3 * lookedBytes} {
			for at := edge - len(spelt) - 20; at < edge+20; at += 3 {
				value := `["` + strings.Repeat("x", at%7) + strings.Repeat(`\\`, (at-at%7)/2) + spelt + `"]`
				if got, err := c.JSON([]byte(value)); err != nil || !strings.HasSuffix(string(got), `[hidden]"]`) {
					t.Fatalf("at %d of %d it became …%s, %v", at, edge, got[max(0, len(got)-60):], err)
				}
			}
		}
	}
	for _, n := range []int{1, 5, 6, 7, 12, 13, 40} {
		text, at := `a\\\u0061\ud83d\ude42\n\"b\\u0041`, 0
		joined := ""
		for at < len(text) {
			k := uncut([]byte(text[at:]), n)
			joined += string(plain([]byte(text[at : at+k])))
			at += k
		}
		if want := string(plain([]byte(text))); joined != want {
			t.Errorf("in pieces of %d it is %q, want %q", n, joined, want)
		}
	}
}
