package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	gtext "github.com/yuin/goldmark/text"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// hostileText is a text that tries to leave the place where it stands, in each of
// the ways that Markdown, HTML, YAML and terminals know. %s tells where it stood.
const hostileText = "evil %s `<i>FORGED` ``<b>FORGED``\n---\n\n# FORGED\n\nFORGED\n===\n\n```\n~~~~\n```````\n    ~~~~~~~~~\n# FORGED\n</code></pre><img src=x onerror=alert(1)><script>FORGED</script>\n" +
	"[FORGED](javascript:alert(1)) ![x](http://evil.example/x.png) <http://evil.example>\n> FORGED\n* FORGED\n1. FORGED\n| FORGED | x |\n|---|---|\n\n[x]: http://evil.example\n" +
	"\x1b]0;title\a\x1b[31mred\u202egpj.exe\u2066\u2028# FORGED\r# FORGED\r\n\u200b\ufeff``"

func nasty(where string) string { return fmt.Sprintf(hostileText, where) }

// hostileSession is a session in which everything that can be said is hostile.
func (w *world) hostileSession(t *testing.T) *storetest.Run {
	t.Helper()
	p := w.alice
	title := strings.ReplaceAll(nasty("title"), "\x00", "")
	r := &storetest.Run{Owner: p.user.ID, Worker: "w1"}
	r.Session = storetest.MustSession(t, w.store, r.Owner, func(n *store.NewSession) { n.Title, n.Workspace = title, nasty("workspace") }).ID
	r.Prompt = storetest.MustPrompt(t, w.store, r.Owner, r.Session, nasty("prompt"), journal.Queue)
	r.Claim = storetest.MustClaim(t, w.store, r.Session, r.Worker)
	r.Turn = storetest.MustPromote(t, w.store, r.Claim)
	command, err := json.Marshal(map[string]string{"command": nasty("command"), "shell": "sh\n# FORGED"})
	if err != nil {
		t.Fatal(err)
	}
	ok, asks, lost := store.NewID("call"), store.NewID("call"), store.NewID("call")
	propose := func(id, tool string, input []byte) *journal.CallProposed {
		b := r.Propose(id, journal.EffectEffect)
		b.Tool, b.Input = tool, input
		return b
	}
	ask := storetest.Ask(store.NewID("per"), asks)
	ask.Permission, ask.Resources, ask.Metadata = "shell\n# FORGED", []string{nasty("resource"), "a`b"}, command
	storetest.MustAppend(t, w.store, r.Claim, journal.PhaseUncertain,
		propose(ok, "shell", command), storetest.Dispatch(ok, 1),
		&journal.CallOutput{CallID: ok, Stream: "stdout", Text: journal.T(nasty("output"))},
		&journal.CallSettled{CallID: ok, State: journal.CallFailed, Reason: nasty("call reason"), OutputBytes: int64(len(nasty("output")))},
		&journal.MessageCompleted{MessageID: store.NewID("msg"), Role: "agent", Part: journal.PartNote, Text: journal.T(nasty("note"))},
		&journal.MessageDelta{MessageID: "msg_open", Role: "agent", Part: journal.PartText, Text: journal.T(nasty("delta"))},
		propose(asks, "tool\n# FORGED", []byte(`{"blob":"# FORGED"}`)), ask,
		propose(lost, "shell", command), storetest.Dispatch(lost, 1),
	)
	if _, err := w.store.Decide(t.Context(), r.Owner, ask.ID, store.Decision{Reply: journal.ReplyReject, Message: nasty("message")}); err != nil {
		t.Fatal(err)
	}
	storetest.MustLose(t, w.store, r.Claim)
	if _, err := w.store.ResolveCall(t.Context(), r.Owner, lost, store.CallResolution{Outcome: journal.InPart, Evidence: nasty("evidence"), Then: journal.ThenStay}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) markdown(t *testing.T, session string) (front map[string]string, body string) {
	t.Helper()
	a := w.do(t, get, "/sessions/"+session+"/export.md", browser(w.alice))
	if got := a.header.Get("Content-Type"); a.status != http.StatusOK || got != "text/markdown; charset=utf-8" {
		t.Fatalf("got %d %s: %.300s", a.status, got, a.body)
	}
	if got, want := a.header.Get("Content-Disposition"), `attachment; filename="`+session+`.md"`; got != want {
		t.Errorf("got the disposition %q, want %q", got, want)
	}
	head, body, ok := strings.Cut(strings.TrimPrefix(string(a.body), "---\n"), "\n---\n")
	if !ok {
		t.Fatalf("no front matter in %.500s", a.body)
	}
	front = map[string]string{}
	for line := range strings.SplitSeq(head, "\n") {
		if key, value, _ := strings.Cut(line, ": "); !strings.HasPrefix(line, "#") {
			front[key] = value
		}
	}
	return front, body
}

func TestExportMarkdown_NothingHostileActs(t *testing.T) {
	// proves OWN-1
	onEach(t, func(t *testing.T, w *world) {
		r := w.hostileSession(t)
		front, body := w.markdown(t, r.Session)
		wantMembers(t, "the front matter", asAny(front), "session title agent workspace state state_since first_entry last_entry journal_sha256 generated_at")
		for key, value := range front {
			if plain := regexp.MustCompile(`^([0-9a-f]{64}|\d+|"([^"\\\x00-\x1f]|\\["\\nt]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4})*"|` + rfc3339.String()[1:len(rfc3339.String())-1] + `)$`); !plain.MatchString(value) {
				t.Errorf("front matter: %s is %s, neither a number, a time nor a quoted text", key, value)
			}
		}
		wantOnlyData(t, body)
		for _, where := range []string{"title", "prompt", "command", "resource", "output", "call reason", "note", "delta", "message", "evidence"} {
			if !strings.Contains(body, "evil "+where) {
				t.Errorf("what the %s says is not in the export", where)
			}
		}
		w.do(t, get, "/sessions/"+r.Session+"/export.md", browser(w.mallory)).want(t, http.StatusNotFound)
	})
}

func asAny(m map[string]string) any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// wantOnlyData reads a document as Markdown with all extensions of GitHub: it has
// our headings and no other, nothing that is a link, an image, HTML or a table,
// and hostile words nowhere but in code.
func wantOnlyData(t *testing.T, body string) {
	t.Helper()
	for _, r := range body {
		if r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u202e\u2066\u2028\u200b\ufeff", r) {
			t.Fatalf("the character %U stands in it as it is", r)
		}
	}
	src := []byte(body)
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(gtext.NewReader(src))
	ours := regexp.MustCompile(`^(Session |Mission|Outcome|Turn \d+|Unknown outcomes?( \d+)?|Decisions by people|Decision \d+|Commands run|Command \d+|Messages|Message \d+|Journal)$`)
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.FencedCodeBlock, *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Heading:
			var words strings.Builder
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if text, ok := c.(*ast.Text); ok {
					words.Write(text.Segment.Value(src))
				}
			}
			if !ours.MatchString(words.String()) {
				t.Errorf("a heading says %q", words.String())
			}
		case *ast.Text:
			if text := string(n.Segment.Value(src)); strings.Contains(text, "FORGED") || strings.Contains(text, "evil") {
				t.Errorf("outside of code stands %q", text)
			}
		case *ast.Document, *ast.Paragraph, *ast.TextBlock, *ast.List, *ast.ListItem:
		default:
			t.Errorf("it has a %s: %q", n.Kind(), n.Lines().Value(src))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExportMarkdown_Sections(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.hostileSession(t)
		front, body := w.markdown(t, r.Session)
		evs := storetest.Events(t, w.store, r.Session)
		if front["first_entry"] != "1" || front["last_entry"] != fmt.Sprint(len(evs)) || front["state"] != `"stopped"` || front["session"] != `"`+r.Session+`"` {
			t.Errorf("got the front matter %v for %d entries", front, len(evs))
		}
		at := 0
		for _, section := range []string{"Mission", "Outcome", "Unknown outcomes", "Decisions by people", "Commands run", "Messages", "Journal"} {
			i := strings.Index(body, "\n## "+section+"\n")
			if i < at {
				t.Fatalf("the section %s is missing, or stands before the one that it follows", section)
			}
			at = i
		}
		for i := range evs {
			if entry := fmt.Sprintf("\n%d. `%s`, ", i+1, evs[i].Kind); strings.Count(body, entry) != 1 {
				t.Errorf("the entry %q stands %d times", entry, strings.Count(body, entry))
			}
		}
		wantList(t, body, len(evs))
		email := "`" + w.alice.user.Email + "` (`" + w.alice.user.ID + "`)"
		for _, want := range []string{
			"Resolved by " + email, "`in_part`.\n\nWhat was found:\n\n", "Answered by " + email, ": `reject`.\n\nMessage:\n\n",
			"of class `effect`: `failed`. Dispatched ", "Output, ", "It is not complete.", ": `stopped`.\n\nReason: `stay`\n",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("%q isn't in it:\n%s", want, body)
			}
		}
		// The hash is that of the entries in the JSON export, however it is computed.
		a := w.do(t, get, "/sessions/"+r.Session+"/export.json", browser(w.alice))
		if got := eventsHash(t, a.body); got != front["journal_sha256"] || !bytes.Contains(a.body, []byte(`"journal_sha256":"`+got+`"}`)) {
			t.Errorf("the entries of the JSON export hash to %s; Markdown says %s", got, front["journal_sha256"])
		}

		idle := w.session(t, w.alice)
		_, body = w.markdown(t, idle)
		for _, want := range []string{"None. Every operation has a recorded result.", "No turn was begun.", "Commands run\n\nNone."} {
			if !strings.Contains(body, want) {
				t.Errorf("%q isn't in the export of a session without work:\n%s", want, body)
			}
		}
	})
}

// wantList fails unless the document ends with a list of n items, each with its data in a block.
func wantList(t *testing.T, body string, n int) {
	t.Helper()
	list := goldmark.DefaultParser().Parse(gtext.NewReader([]byte(body))).LastChild()
	if list.Kind() != ast.KindList || list.ChildCount() != n {
		t.Fatalf("it ends with a %s of %d, want a list of %d", list.Kind(), list.ChildCount(), n)
	}
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		if last := item.LastChild(); item.ChildCount() != 2 || last.Kind() != ast.KindFencedCodeBlock {
			t.Errorf("an entry has %d parts and ends with a %s, want a line and a block", item.ChildCount(), last.Kind())
		}
	}
}

// eventsHash is how another program gets at the hash: over the array's bytes as they are.
func eventsHash(t *testing.T, export []byte) string {
	t.Helper()
	var out struct {
		Events json.RawMessage `json:"events"`
	}
	if err := json.Unmarshal(export, &out); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(out.Events)
	return hex.EncodeToString(sum[:])
}

// onFirstWrite does something when an export has begun.
type onFirstWrite struct {
	bytes.Buffer
	do func()
}

func (w *onFirstWrite) Write(b []byte) (int, error) {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(b)
}

// What is appended while an export is written isn't in it: not as an entry, and
// not in what was folded of them.
func TestExport_IsOneRange(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		for name, export := range map[string]exportFunc{"json": ExportJSON, "md": ExportMarkdown} {
			r := &storetest.Run{Owner: w.alice.user.ID, Worker: "w1"}
			long := strings.Repeat("long ", 2000) // so that the first write comes before any entry is read for it
			r.Session = storetest.MustSession(t, w.store, r.Owner, func(n *store.NewSession) { n.Title = long }).ID
			storetest.MustPrompt(t, w.store, r.Owner, r.Session, "do it", journal.Queue)
			r.Claim = storetest.MustClaim(t, w.store, r.Session, r.Worker)
			r.Turn = storetest.MustPromote(t, w.store, r.Claim)
			call := r.MustDispatched(t, w.store, journal.EffectEffect)
			storetest.MustAppend(t, w.store, r.Claim, "", &journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.T(strings.Repeat("before ", 2000))})
			head := len(storetest.Events(t, w.store, r.Session))
			out := &onFirstWrite{do: func() {
				storetest.MustAppend(t, w.store, r.Claim, journal.PhaseSafe, &journal.CallOutput{CallID: call, Stream: "stdout", Offset: 14000, Text: journal.T("AFTERWARDS")},
					&journal.CallSettled{CallID: call, State: journal.CallSucceeded, OutputBytes: 14010})
				storetest.MustPrompt(t, w.store, r.Owner, r.Session, "AFTERWARDS", journal.Queue)
			}}
			if err := export(t.Context(), out, w.store, r.Owner, r.Session); err != nil {
				t.Fatal(err)
			}
			if out.do != nil || len(storetest.Events(t, w.store, r.Session)) != head+3 {
				t.Fatal("nothing was appended in its midst")
			}
			text := out.String()
			if strings.Contains(text, "AFTERWARDS") || strings.Contains(text, "succeeded") {
				t.Errorf("%s: what came after its start is in it:\n%s", name, text)
			}
			if name == "json" && !strings.Contains(text, `"output_bytes":14000,`) {
				t.Errorf("the output isn't counted as it was at the start: %s", text[strings.Index(text, `"calls":`):])
			}
			if !strings.Contains(text, "dispatched") || !strings.Contains(text, "before before") {
				t.Errorf("%s: what came before its start isn't in it", name)
			}
		}
	})
}

// A session with more calls than an export holds at once: each is there once, as
// the table of calls has it, with one of the first unknown until the end.
func TestExport_ManyCalls(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		lost := r.MustDispatched(t, w.store, journal.EffectEffect)
		const n = foldWindow + 30
		for _, phase := range []int{0, 1} {
			var bodies []journal.Body
			for i := range n / 2 {
				id := store.NewID("call")
				bodies = append(bodies, r.Propose(id, journal.EffectRead), storetest.Dispatch(id, 1),
					&journal.CallOutput{CallID: id, Stream: "stdout", Text: journal.T(fmt.Sprintf("output %d.%d", phase, i))}, storetest.Settle(id, journal.CallSucceeded))
			}
			storetest.MustAppend(t, w.store, r.Claim, "", bodies...)
		}
		storetest.MustLose(t, w.store, r.Claim)
		if _, err := w.store.ResolveCall(t.Context(), r.Owner, lost, store.CallResolution{Outcome: journal.CannotTell, Then: journal.ThenStay}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := ExportJSON(t.Context(), &out, w.store, r.Owner, r.Session); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Calls []json.RawMessage `json:"calls"`
		}
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		var want []json.RawMessage
		err := eachCall(t.Context(), w.store, r.Owner, r.Session, func(c *journal.Call) {
			b, err := journal.Encode(newCallJSON(c))
			if err != nil {
				t.Error(err)
			}
			want = append(want, b)
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(want) != n+1 || !slices.EqualFunc(got.Calls, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Errorf("got %d calls, want the %d of the table; the first are\n%s\n%s", len(got.Calls), len(want), got.Calls[0], want[0])
		}
		_, body := w.markdown(t, r.Session)
		if c, m := strings.Count(body, "\n### Command "), strings.Count(body, "\n### Unknown outcome "); c != n+1 || m != 1 {
			t.Errorf("Markdown has %d commands and %d unknown outcomes, want %d and 1", c, m, n+1)
		}
	})
}

// A message that was never completed is there once, however far apart its pieces are.
func TestExportMarkdown_UnfinishedMessage(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		piece := func(text string) *journal.MessageDelta {
			return &journal.MessageDelta{MessageID: "msg_open", Role: "agent", Part: journal.PartText, Text: journal.T(text)}
		}
		bodies := []journal.Body{piece("first, ")}
		for i := range foldWindow + 10 {
			bodies = append(bodies, &journal.MessageCompleted{MessageID: fmt.Sprint("msg_", i), Role: "agent", Part: journal.PartText, Text: journal.T("between")})
		}
		storetest.MustAppend(t, w.store, r.Claim, "", append(bodies, piece("last"))...)
		_, body := w.markdown(t, r.Session)
		if whole, n := strings.Count(body, "\nfirst, last\n"), strings.Count(body, "\n### Message "); whole != 1 || n != foldWindow+12 {
			t.Errorf("the message stands %d times among %d, want once among %d", whole, n, foldWindow+12)
		}
	})
}

// The ends of a long output are shown, what isn't text as escapes, and the gap is said.
func TestExportMarkdown_LongOutput(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		call := r.MustDispatched(t, w.store, journal.EffectRead)
		head, tail := "HEAD\xff\xfe\x00"+strings.Repeat("a", 6000), strings.Repeat("b", 6000)+"TAIL"
		storetest.MustAppend(t, w.store, r.Claim, "", &journal.CallOutput{CallID: call, Stream: "stdout", Text: journal.Text{S: head, Raw: true}},
			&journal.CallOutput{CallID: call, Stream: "stdout", Offset: int64(len(head)) + 5000, Dropped: 5000, Text: journal.T(tail)},
			&journal.CallSettled{CallID: call, State: journal.CallSucceeded, OutputBytes: int64(len(head) + 5000 + len(tail)), DroppedBytes: 5000})
		_, body := w.markdown(t, r.Session)
		section := body[strings.Index(body, "## Commands run"):strings.Index(body, "## Messages")]
		for _, want := range []string{`HEAD\xff\xfe\x00aaa`, "bbbTAIL\n```", "of whose middle 5 KB were not kept", "It begins:", "And it ends:"} {
			if !strings.Contains(section, want) {
				t.Errorf("%q isn't in\n%.300s", want, section)
			}
		}
		if len(section) > 2*shownOutput+2000 {
			t.Errorf("it has %d bytes", len(section))
		}
	})
}

// A write that fails ends the export with its error, at once.
func TestExport_Fails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.New(t, "sqlite"))
	r := w.hostileSession(t)
	for name, export := range map[string]exportFunc{"json": ExportJSON, "md": ExportMarkdown} {
		if err := export(t.Context(), failing{}, w.store, r.Owner, r.Session); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v, want the writer's error", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := export(ctx, &bytes.Buffer{}, w.store, r.Owner, r.Session); err == nil {
			t.Errorf("%s: it goes on without a database", name)
		}
	}
}

var errFull = errors.New("full")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// A command that went on while its server was lost: both exports and the call say
// since when it is followed again.
//
// proves REC-10
func TestExport_AdoptedCall(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		r := w.run(t, w.alice)
		id := r.MustSpooled(t, w.store, journal.EffectEffect)
		r.MustAdopt(t, w.store, id)
		c, err := w.store.Call(t.Context(), r.Owner, id)
		if err != nil || c.AdoptedAt == 0 {
			t.Fatalf("got %+v, %v", c, err)
		}
		since := timeJSON(c.AdoptedAt)
		for name, export := range map[string]exportFunc{`"adopted_at":"` + since + `"`: ExportJSON, "it was found still running at " + since + ", and nothing of it was interrupted up to then.": ExportMarkdown} {
			var out bytes.Buffer
			if err := export(t.Context(), &out, w.store, r.Owner, r.Session); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), name) {
				t.Errorf("%q isn't in the export:\n%s", name, out.String())
			}
		}
		page := func() string {
			return w.tab(t, w.alice).open("/sessions/" + r.Session).page().want(http.StatusOK).main()
		}
		if got := page(); !strings.Contains(got, "up to then nothing of it was interrupted") {
			t.Errorf("the page says %q", got)
		}

		// Lost after that, it is nowhere said that nothing was interrupted.
		r.Claim = storetest.MustClaim(t, w.store, r.Session, r.Worker)
		storetest.MustLose(t, w.store, r.Claim)
		var out bytes.Buffer
		if err := ExportMarkdown(t.Context(), &out, w.store, r.Owner, r.Session); err != nil {
			t.Fatal(err)
		}
		commands, _, _ := strings.Cut(out.String(), "# Journal")
		if strings.Contains(commands, "nothing of it was interrupted") || !strings.Contains(commands, "it was found still running at "+since+". It was lost later.") {
			t.Errorf("the export says of what was lost later:\n%s", commands)
		}
		if got := page(); strings.Contains(got, "nothing of it was interrupted") || !strings.Contains(got, "It was lost later.") {
			t.Errorf("the page says of what was lost later %q", got)
		}
	})
}

// A command that ended while nobody followed it has no duration but the one that
// its own record gives, in the page of the call as in both exports.
func TestPages_DurationOfWhatNobodySawEnd(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const began, ran = 1_790_000_000_000, 90_000
		for name, tt := range map[string]struct {
			settled journal.CallSettled
			took    string // "": not known
		}{
			"by a record without times": {journal.CallSettled{State: journal.CallSucceeded}, ""},
			"ended by its shim":         {journal.CallSettled{State: journal.CallCancelled, Reason: "orphaned"}, ""},
			"by a record with times":    {journal.CallSettled{State: journal.CallFailed, StartedAt: began, EndedAt: began + ran}, "1 min"},
		} {
			w.store.Skew(0)
			r := w.run(t, w.alice)
			id := r.MustSpooled(t, w.store, journal.EffectEffect)
			w.store.Skew(2 * time.Hour)
			storetest.MustFind(t, w.store, r.Claim, map[string]store.Found{id: {Settled: &tt.settled}})
			page := w.tab(t, w.alice).open("/calls/" + id).page().want(http.StatusOK).main()
			var out bytes.Buffer
			if err := ExportMarkdown(t.Context(), &out, w.store, r.Owner, r.Session); err != nil {
				t.Fatal(err)
			}
			row := w.tab(t, w.alice).open("/sessions/" + r.Session).page().doc.Find(`li[data-kind="call.settled"]`).Text()
			for where, text := range map[string]string{"page": page, "journal": row, "export": out.String()} {
				if strings.Contains(text, "2 h") || (tt.took != "" && !strings.Contains(text, tt.took)) {
					t.Errorf("%s: the %s says another duration than %q: %s", name, where, tt.took, text)
				}
			}
			if tt.took == "" && (!strings.Contains(page, "Recorded") || strings.Contains(page, ", after ")) {
				t.Errorf("%s: the page says when it ended: %s", name, page)
			}
		}
	})
}
