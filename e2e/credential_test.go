package e2e

import (
	"bytes"
	"html"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	holdfast "holdfast/journal"
)

// secretKey is a credential's value, with what JSON and HTML spell otherwise.
const secretKey = `s3cr3t/"q&of-mine-0123456789`

// store stores a credential by the page.
func (b *browser) store(name, agent, value string) {
	b.t.Helper()
	b.visit("/settings/credentials")
	b.submit("/settings/credentials", map[string]string{"name": name, "agent": agent, "value": value})
	if !strings.Contains(b.text, "is stored") {
		b.t.Errorf("the page doesn't say that %s is stored: %s", name, tail(b.text, 2000))
	}
}

// drop deletes all credentials by the page.
func (b *browser) drop() {
	b.t.Helper()
	for {
		b.visit("/settings/credentials")
		to, ok := b.doc.Find(`[data-testid="credential-delete"]`).Attr("href")
		if !ok {
			return
		}
		b.visit(to)
		b.submit("/deletion", nil)
	}
}

// signedIn is a browser of the world's user.
func (w *world) signedIn(s *server) *browser {
	w.t.Helper()
	b := w.browser(s)
	b.signIn(w.email)
	return b
}

// wantHidden fails if a value stands in a text in a spelling that people or programs
// read as it is.
func (w *world) wantHidden(where, text, value string) {
	w.t.Helper()
	for _, form := range append(holdfast.Forms(value), html.EscapeString(value)) {
		if at := strings.Index(text, form); at >= 0 {
			w.t.Errorf("%s shows the value: …%q", where, text[max(0, at-80):min(len(text), at+len(form)+20)])
		}
	}
}

// wantSealed fails if a value stands in the state folders, the database, on a command
// line, or in what the servers print.
func (w *world) wantSealed(value string, servers ...*server) {
	w.t.Helper()
	for _, s := range servers {
		w.wantHidden("the log", s.err.String()+s.out.String(), value)
		err := filepath.WalkDir(s.state, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // a folder may go away meanwhile
			}
			raw, err := os.ReadFile(path)
			if err == nil {
				w.wantHidden(path, string(raw), value)
			}
			return nil
		})
		if err != nil {
			w.t.Error(err)
		}
	}
	for _, form := range holdfast.Forms(value) {
		if w.db.Contains(w.t, form) {
			w.t.Error("the database holds the value")
		}
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		w.t.Error(err)
	}
	for _, path := range lines {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		w.wantHidden(path, string(bytes.ReplaceAll(raw, []byte{0}, []byte(" "))), value)
		if bytes.HasSuffix(bytes.TrimRight(raw, "\x00"), []byte("holdfast\x00shim")) {
			env, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
			w.wantHidden(path+", its environment", string(env), value)
		}
	}
}

// leaks is an agent that tells its key wherever it can, whole, letter by letter and in
// another spelling, and waits for the test in the middle of it.
const leaks = `{"prompts": [{"match": "Leak", "steps": [
	{"say": "whole {{env.MODEL_KEY}}, "},
	{"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "escaped {{escaped.MODEL_KEY}}, "}}},
	{"say": "spelt "}, {"spell": "{{env.MODEL_KEY}}"}, {"say": ", "},
	{"say": "halves s3cr3t/\"q"}, {"touch": "WORK/half"}, {"wait_file": "WORK/go"}, {"say": "&of-mine-0123456789."},
	{"stderr": "{{env.MODEL_KEY}}"}, {"rubbish": "{{env.MODEL_KEY}}"}, {"unknown_update": true},
	{"run": "i=1; while [ $i -le ${#MODEL_KEY} ]; do printf %s \"$MODEL_KEY\" | cut -c$i | tr -d '\\n'; i=$((i+1)); done; echo; echo \"whole $MODEL_KEY\""},
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "t9", "title": "read {{escaped.MODEL_KEY}}", "kind": "read", "status": "completed", "rawInput": {"path": "{{escaped.MODEL_KEY}}"}}},
	{"permission": {"toolCall": {"toolCallId": "p1", "title": "use {{env.MODEL_KEY}} and {{escaped.MODEL_KEY}}", "kind": "execute", "rawInput": {"command": "true # {{env.MODEL_KEY}}"}}},
		"then_on": {"allow": [{"run": "true", "tool": "p1"}, {"say": "allowed {{env.MODEL_KEY}}"}], "reject": [{"say": "no"}]}}
	]},
	{"match": "Sum", "steps": [{"run": "printf %s \"$MODEL_KEY\" | sha256sum"}]}, {"match": "Fail", "steps": [{"error": {"code": -32603, "message": "bad key {{env.MODEL_KEY}}, {{escaped.MODEL_KEY}}"}}]}]}`

// everywhere is all that people and programs can read of a session.
func (w *world) everywhere(s *server, b *browser, id string) map[string]string {
	w.t.Helper()
	out := map[string]string{
		"its page": b.visit("/sessions/" + id), "the list": b.visit("/"), "the inbox": b.visit("/needs-you"), "the credentials": b.visit("/settings/credentials"),
		"the export": string(s.get("/api/v1/sessions/"+id+"/export").want(w.t, http.StatusOK).body),
		"Markdown":   w.mustRun("", "export", id, "--format", "md"),
		"events":     string(s.get("/api/v1/sessions/"+id+"/events").want(w.t, http.StatusOK).body),
		"verify":     w.mustRun("", "verify", id),
	}
	for _, c := range s.calls(id) {
		out["the output of "+c.ID] = string(s.get("/api/v1/calls/"+c.ID+"/output").want(w.t, http.StatusOK).body)
		out["the page of "+c.ID] = b.visit("/calls/" + c.ID)
	}
	for _, r := range s.pending(id) {
		out["the request "+r.ID] = b.visit("/permissions/" + r.ID)
	}
	return out
}

// A credential that is stored by the page reaches the agent, and stands in clear nowhere
// that Holdfast keeps or shows, however the agent tells it, and whoever dies meanwhile.
//
// proves OWN-3 JRN-8 JRN-5
func TestE2E_ACredentialNeverShows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", leaks)
		s := w.serve(flags(quick...), flags("--log-level", "debug"), agents(f))
		b := w.signedIn(s)
		b.store("MODEL_KEY", "fake", secretKey)
		if info, err := os.Stat(filepath.Join(s.state, "key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key file: %v, %v", info, err)
		}
		id := s.mission("Leak", f.by, asking)
		st := s.stream(id, "")
		defer st.cancel()
		w.untilFile("half")
		w.wantSealed(secretKey, s)
		s.kill9()
		w.wantSealed(secretKey, s)
		s.restart()
		w.touch("go")
		s.untilKind(id, "permission.asked", 1)
		s.untilState(id, "waiting")
		for where, text := range w.everywhere(s, b, id) {
			w.wantHidden(where, text, secretKey)
		}
		w.wantSealed(secretKey, s)
		s.kill9()
		s.restart()
		s.allow(id)
		s.untilQuiet(id, "ready")
		s.prompt(id, "Fail with "+secretKey, "queue")
		s.untilKind(id, "turn.ended", 2)
		s.untilQuiet(id, "failed")

		for where, text := range w.everywhere(s, b, id) {
			w.wantHidden(where, text, secretKey)
		}
		w.wantSealed(secretKey, s)
		j := s.events(id)
		wantSaid(w, j, "whole [hidden], escaped [hidden], spelt [hidden], halves [hidden].", "allowed [hidden]")
		if out := j.output(""); !strings.Contains(out, "[hidden]\nwhole [hidden]\n") {
			t.Errorf("the command printed %q", out)
		}
		started := j.of("agent.started")
		if len(started) != 1 || !strings.Contains(string(started[0].Data), `"name":"MODEL_KEY"`) {
			t.Errorf("the agent was started so: %+v", started)
		}
		live, _ := io.ReadAll(http.MaxBytesReader(nil, st.body, 1<<20)) // its server was killed
		w.wantHidden("the stream", string(live), secretKey)
		s.sigterm()
		w.wantSealed(secretKey, s)
	})
}

// Another server with the same key gives the agent the credential, and masks it, also
// in what people write there.
//
// proves OWN-3
func TestE2E_ACredentialOnAnotherServer(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, w *world) {
		key := env("HOLDFAST_KEY=" + strings.Repeat("0123456789abcdef", 4))
		f := w.fake("fake", leaks)
		first := w.serve(flags(quick...), agents(f), key)
		second := w.serve(as("2"), flags(quick...), agents(f), key)
		const later = "stored-after-the-other"
		b := w.signedIn(first)
		b.store("MODEL_KEY", "", secretKey)
		b.store("LATER", "", later)
		w.touch("go")
		writes := func(text string) string {
			id := second.mission("nothing but " + text)
			second.untilQuiet(id, "failed", "ready")
			return string(second.get("/api/v1/sessions/" + id + "/events").body)
		}
		// It hears at its next sweep, of all that is stored by then.
		eventually(t, "the second server has heard of them", func() bool { return !strings.Contains(writes(later), later) })
		w.wantHidden("what is written at the second server", writes(secretKey), secretKey)
		first.kill9()
		id := second.mission("Leak", f.by, asking)
		second.untilKind(id, "permission.asked", 1)
		second.untilState(id, "waiting")
		second.allow(id)
		second.untilQuiet(id, "ready")
		for where, text := range w.everywhere(second, w.signedIn(second), id) {
			w.wantHidden(where, text, secretKey)
		}
		wantSaid(w, second.events(id), "whole [hidden], escaped [hidden], spelt [hidden], halves [hidden].", "allowed [hidden]")
		if _, err := os.Stat(filepath.Join(second.state, "key")); err == nil {
			t.Error("a key file was made beside the key in the environment")
		}
		other := w.configure(as("3"), agents(f))
		if o := execute(t, w.dir, "", nil, "serve", "--addr", other.addr, "--database", w.db.URL, "--state", other.state, "--workspaces", w.work); o.code != 2 || !strings.Contains(o.err, "there is none in the file") {
			t.Errorf("a server without the key: exit %d\n%s", o.code, o.err)
		}
	})
}

// sums are what the agent's command has printed of its key.
func sums(j journal) (out []string) {
	for line := range strings.Lines(j.output("")) {
		if sum, _, ok := strings.Cut(line, " "); ok && len(sum) == 64 {
			out = append(out, sum)
		}
	}
	return out
}

// An agent has what is stored at its next turn: its process is ended while it rests,
// and its conversation goes on in another; one that can't do that keeps what it has.
//
// proves OWN-3
func TestE2E_AChangedCredentialReachesTheAgent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f, stuck := w.fake("fake", leaks), w.fake("stuck", strings.Replace(leaks, "{", `{"capabilities": {},`, 1))
		s := w.serve(flags(quick...), agents(f, stuck), env("MODEL_KEY=of-the-configuration"), flags("--agent-env", "MODEL_KEY"))
		b := w.signedIn(s)
		turn := 0
		ids := map[*fake]string{}
		sum := func() map[*fake]string {
			turn++
			out := map[*fake]string{}
			for _, one := range []*fake{f, stuck} {
				if ids[one] == "" {
					ids[one] = s.mission("Sum", one.by)
				} else {
					s.prompt(ids[one], "Sum", "queue")
				}
				s.untilKind(ids[one], "turn.ended", turn)
				s.untilQuiet(ids[one], "ready")
				all := sums(s.events(ids[one]))
				out[one] = all[len(all)-1]
			}
			return out
		}
		configured := sum()
		b.store("MODEL_KEY", "", "the-first-value")
		if unused := b.visit("/settings/credentials"); strings.Count(unused, "never") < 2 {
			t.Error("the page says that it was changed, or used, already")
		}
		first := sum()
		b.visit("/settings/credentials")
		if used := b.doc.Find(`[data-testid="credential-row"] [data-l="Used"]`).Text(); strings.Contains(used, "never") {
			t.Error("the page doesn't say that it was used")
		}
		again := sum()
		b.store("MODEL_KEY", "fake", "the-second-value")
		second := sum()
		b.drop()
		none := sum()
		for what, want := range map[string][2]string{
			"the first": {first[f], holdfast.Hash("the-first-value")}, "the same": {again[f], first[f]}, "the second": {second[f], holdfast.Hash("the-second-value")},
			"without": {none[f], holdfast.Hash("of-the-configuration")}, "at the beginning": {configured[f], none[f]}, "what can't go on elsewhere": {second[stuck], configured[stuck]},
		} {
			if want[0] != want[1] {
				t.Errorf("%s: the agent has %s, want %s", what, want[0], want[1])
			}
		}
		wantCounts(t, s.events(ids[f]), map[string]int{"agent.started": 4, "agent.ended": 3, "attempt.dispatched": 5, "attempt.unknown": 0})
		wantCounts(t, s.events(ids[stuck]), map[string]int{"agent.started": 1, "agent.ended": 0})
		for _, e := range s.events(ids[f]).of("agent.ended") {
			if e.str("reason") != "its credentials were changed" {
				t.Errorf("it was ended so: %s", e.Data)
			}
		}
		f.want(map[string]int{"session/new": 1, "session/resume": 3, "session/prompt": 5})
		s.sigterm()
	})
}

// A session that waits for its agent's sign-in leads to where its key is stored, and
// goes on from there.
//
// proves OWN-3 ATT-1
func TestE2E_AKeyInsteadOfASignIn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", strings.Replace(leaks, "{", `{"needs_env": "MODEL_KEY",`, 1))
		s := w.serve(flags(quick...), agents(f))
		id := s.mission("Sum", f.by)
		s.untilQuiet(id, "blocked")
		b := w.signedIn(s)
		b.visit("/sessions/" + id)
		link := b.doc.Find(`[data-testid="store-key"]`)
		if !strings.Contains(link.Text(), "store the agent’s key") {
			t.Errorf("the page doesn't lead to the credentials: %s", tail(b.text, 3000))
		}
		to, _, _ := strings.Cut(link.AttrOr("href", ""), "#")
		b.visit(to)
		if chosen := b.doc.Find("#agent option[selected]"); chosen.AttrOr("value", "") != "fake" {
			html, _ := goquery.OuterHtml(b.doc.Find("#agent"))
			t.Errorf("the form isn't for the session's agent: %s", html)
		}
		b.submit("/settings/credentials", map[string]string{"name": "MODEL_KEY", "value": secretKey})
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		if got := sums(s.events(id)); !slices.Equal(got, []string{holdfast.Hash(secretKey)}) {
			t.Errorf("the agent's key has the sums %v", got)
		}
		// The doctor looks with the credentials of a user, and tells nothing of them.
		o := w.run("", "doctor", "agent", "fake", "--agent", "fake="+f.program)
		if o.code != 1 || !strings.Contains(o.words(), "MODEL_KEY isn't set") {
			t.Errorf("the doctor without a user: %d %s%s", o.code, o.out, o.err)
		}
		o = w.run("", "doctor", "agent", "fake", "--agent", "fake="+f.program, "--user", w.email)
		if o.code != 0 || !strings.Contains(o.out, "opens a session") {
			t.Errorf("the doctor with the user's credentials: %d %s%s", o.code, o.out, o.err)
		}
		w.wantHidden("the doctor", o.out+o.err, secretKey)
	})
}

// A server whose key isn't the one of its journal isn't started, says what holds and
// what to do, and starts again once the credentials are forgotten.
//
// proves OWN-3
func TestE2E_AnotherKeyIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", strings.Replace(leaks, "{", `{"needs_env": "MODEL_KEY",`, 1))
		s := w.serve(flags(quick...), agents(f))
		if o := w.run("", "doctor"); !strings.Contains(o.out, "credentials: none was ever stored") {
			t.Errorf("the doctor before: %s", o.out)
		}
		if o := w.run("", "credential", "forget"); o.code != 0 || !strings.Contains(o.out, "No credential is stored") {
			t.Errorf("forget before: %d %s%s", o.code, o.out, o.err)
		}
		w.signedIn(s).store("MODEL_KEY", "", secretKey)
		w.signedIn(s).store("OTHER_KEY", "fake", "another-of-them")
		if o := w.run("", "doctor"); !strings.Contains(o.out, "2 stored values open with the key") {
			t.Errorf("the doctor with the key: %s", o.out)
		}
		s.sigterm()
		path := filepath.Join(s.state, "key")
		mine, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		start := func(env ...string) outcome {
			return execute(t, w.dir, "", env, append([]string{"serve", "--addr", s.addr, "--database", w.db.URL, "--state", s.state, "--workspaces", w.work}, s.flags...)...)
		}
		other := strings.Repeat("0f", 32)
		for name, change := range map[string]func() []string{
			"another file": func() []string { return errs(t, os.WriteFile(path, []byte(other), 0o600)) },
			"no file":      func() []string { return errs(t, os.Remove(path)) },
			"a variable": func() []string {
				return append(errs(t, os.WriteFile(path, mine, 0o600)), "HOLDFAST_KEY="+other)
			},
			"open to others": func() []string { return errs(t, os.WriteFile(path, mine, 0o600), os.Chmod(path, 0o644)) },
		} {
			o := start(change()...)
			for _, says := range []string{"the server was not started", "Nothing is lost", "2 stored credentials"} {
				if o.code != 2 || !strings.Contains(o.err, says) {
					t.Errorf("%s: exit %d, without %q:\n%s", name, o.code, says, o.err)
				}
			}
			w.wantHidden("the refusal", o.err+o.out, secretKey)
			if strings.Contains(o.err+o.out, other) || strings.Contains(o.err+o.out, strings.TrimSpace(string(mine))) {
				t.Errorf("%s: the refusal shows a key", name)
			}
			if err := os.Chmod(path, 0o600); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		errs(t, os.WriteFile(path, []byte(other), 0o600))
		if o := w.run("", "doctor"); o.code != 1 || !strings.Contains(o.words(), "holdfast credential forget") {
			t.Errorf("the doctor with another key: %d %s", o.code, o.out)
		}
		if o := w.run("", "credential", "forget"); o.code != 0 || !strings.Contains(o.out, "2 credentials of 1 user would be deleted") {
			t.Errorf("forget: %d %s%s", o.code, o.out, o.err)
		}
		if o := w.run("", "credential", "forget", "--yes"); o.code != 0 || !strings.Contains(o.out, "Deleted: 2 credentials") {
			t.Errorf("forget: %d %s%s", o.code, o.out, o.err)
		}
		s.restart()
		id := s.mission("Sum", f.by)
		s.untilQuiet(id, "blocked")
		b := w.signedIn(s)
		if text := b.visit("/settings/credentials"); !strings.Contains(text, "None is stored") {
			t.Error("the page still lists them")
		}
		b.store("MODEL_KEY", "", secretKey)
		s.resume(id).want(t, http.StatusAccepted)
		s.untilQuiet(id, "ready")
		w.wantSealed(secretKey, s)
	})
}

// spells is an agent that tells its key letter by letter and in another spelling once
// nobody hears it, and goes on.
const spells = `{"prompts": [{"match": "Spell", "steps": [
	{"say": "begin "}, {"touch": "WORK/half"}, {"wait_file": "WORK/go"}, {"spell": "{{env.MODEL_KEY}}"},
	{"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "escaped {{escaped.MODEL_KEY}}, "}}},
	{"stderr": "{{env.MODEL_KEY}}"}, {"touch": "WORK/spelt"}, {"wait_file": "WORK/never"}]},
	{"match": "Rest", "steps": [{"say": "rests"}]}]}`

// An agent's process whose credentials were forgotten, or don't open any more, is ended
// before anything is read that it said: nobody could hide what it spells.
//
// proves OWN-3 ATT-3
func TestE2E_AForgottenCredentialNeverShows(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world){
		"forgotten": func(w *world) {
			o := w.run("", "credential", "forget", "--yes")
			if o.code != 0 || !strings.Contains(o.out, "2 agents that may still run with values") || !strings.Contains(o.words(), "--stop-commands") {
				w.t.Errorf("forget: %d %s%s", o.code, o.out, o.err)
			}
		},
		"spoilt": func(w *world) {
			w.db.MustExec(w.t, w.sql(), "UPDATE credential SET agent = 'elsewhere'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *world) {
				f := w.fake("fake", spells)
				s := w.serve(flags(quick...), agents(f))
				w.signedIn(s).store("MODEL_KEY", "", secretKey)
				resting := s.mission("Rest", f.by)
				s.untilQuiet(resting, "ready")
				id := s.mission("Spell", f.by)
				w.untilFile("half")
				s.kill9()
				w.touch("go")
				w.untilFile("spelt")
				lose(w)
				s.restart()
				s.untilKind(id, "agent.ended", 1)
				s.untilQuiet(id, "uncertain")
				j := s.events(id)
				wantCounts(t, j, map[string]int{"attempt.unknown": 1, "agent.started": 1})
				ended := j.of("agent.ended")[0]
				if !strings.Contains(ended.str("reason"), "can't be masked any more") {
					t.Errorf("it was ended so: %s", ended.Data)
				}
				s.prompt(resting, "Rest", "queue")
				s.untilKind(resting, "turn.ended", 2)
				s.untilQuiet(resting, "ready")
				if reason := s.events(resting).of("agent.ended")[0].str("reason"); !strings.Contains(reason, "can't be masked any more") {
					t.Errorf("the one that rested was ended so: %s", reason)
				}
				b := w.signedIn(s)
				for where, text := range w.everywhere(s, b, id) {
					w.wantHidden(where, text, secretKey)
				}
				said := ""
				for _, one := range j.said() {
					said += one.streamed + one.whole
				}
				if strings.Contains(said, secretKey[:4]) || strings.Contains(said, "escaped") {
					t.Errorf("the journal has what it spelt: %s", said)
				}
				w.wantSealed(secretKey, s)
			})
		})
	}
}

// errs fails the test if there is one.
func errs(t *testing.T, all ...error) []string {
	t.Helper()
	for _, err := range all {
		if err != nil {
			t.Fatal(err)
		}
	}
	return nil
}

// Who stores words of the protocol and of the journal as credentials blots texts and
// breaks no session, neither the own ones nor those of others.
//
// proves OWN-3 OWN-1 JRN-8
func TestE2E_CredentialsThatAreWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		f := w.fake("fake", `{"prompts": [{"steps": [{"say": "it is completed, "}, {"say": "all of it"},
			{"permission": {"toolCall": {"toolCallId": "p1", "title": "print", "kind": "execute", "rawInput": {"command": "echo printed"}}},
			"then_on": {"allow": [{"run": "echo printed", "tool": "p1"}], "reject": [{"say": "no"}]}}]}]}`)
		s := w.serve(flags(quick...), agents(f))
		b := w.signedIn(s)
		for i, word := range []string{"completed", "sessionUpdate", "message_chunk", "toolCallId", "end_turn", "attempt_id", "att_01a22e", "call_01a2", "prompt_id", "in_progress", "allow_once"} {
			b.store("KEY_"+strings.Repeat("A", i+1), "", word)
		}
		id := s.mission("Do it", f.by, asking)
		for turn := 1; turn <= 2; turn++ {
			s.untilState(id, "waiting")
			s.allow(id)
			s.untilKind(id, "turn.ended", turn)
			s.untilQuiet(id, "ready")
			if turn == 1 {
				s.prompt(id, "Again", "queue")
			}
		}
		j := s.events(id)
		wantSaid(w, j, "it is [hidden], all of it", "it is [hidden], all of it")
		if out := j.output(""); strings.Count(out, "printed\n") != 2 {
			t.Errorf("the commands printed %q", out)
		}
		w.mustRun("", "verify", id)
	})
}
