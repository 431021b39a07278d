package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// fake is an agent that speaks ACP (e2e/fakeagent) as the sessions of a world have
// it: a program of its own, which follows a script and logs what it hears and does.
type fake struct {
	w       *world
	name    string // what sessions name it by
	program string // what the server runs: it can be replaced while the server lives
}

// fake makes one. In the script WORK is the workspace.
func (w *world) fake(name, script string) *fake {
	w.t.Helper()
	f := &fake{w: w, name: name, program: filepath.Join(w.dir, "agent-"+name)}
	f.follows(script)
	f.is("exec " + agentBinary)
	return f
}

// follows gives it another script, for its next process.
func (f *fake) follows(script string) {
	f.w.t.Helper()
	text := strings.ReplaceAll(script, "WORK", f.w.work)
	if !json.Valid([]byte(text)) {
		f.w.t.Fatalf("this is no script: %s", text)
	}
	f.write(f.path("script"), text, 0o600)
}

// is makes its program another one, which has the agent's environment.
func (f *fake) is(body string) {
	f.w.t.Helper()
	text := "#!/bin/sh\n"
	for _, name := range []string{"SCRIPT", "LOG", "STATE"} {
		text += fmt.Sprintf("export FAKEAGENT_%s='%s'\n", name, f.path(strings.ToLower(name)))
	}
	f.write(f.program, text+body+"\n", 0o700)
}

func (f *fake) write(path, text string, mode os.FileMode) {
	f.w.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		f.w.t.Fatal(err)
	}
}

func (f *fake) path(what string) string { return filepath.Join(f.w.dir, "agent-"+f.name+"."+what) }

// forgets its sessions, also those of the process that runs when its next one begins.
func (f *fake) forgets() {
	f.w.t.Helper()
	if err := os.Remove(f.path("state")); err != nil {
		f.w.t.Fatal(err)
	}
}

// agents are the flags of a server that has these.
func agents(of ...*fake) func(*server) {
	var all []string
	for _, f := range of {
		all = append(all, "--agent", f.name+"="+f.program)
	}
	return flags(all...)
}

// by makes the session one of this agent.
func (f *fake) by(body map[string]any) { body["agent"] = f.name }

// entry is a line of an agent's log.
type entry struct {
	PID  int    `json:"pid"`
	What string `json:"what"`
	Text string `json:"text"`
	Step string `json:"step"`
	Line struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Prompt []struct {
				Text string `json:"text"`
			} `json:"prompt"`
		} `json:"params"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code int `json:"code"`
		} `json:"error"`
	} `json:"line"`
}

// log is what its processes have logged so far.
func (f *fake) log() []entry {
	f.w.t.Helper()
	raw, err := os.ReadFile(f.path("log"))
	if err != nil && !os.IsNotExist(err) {
		f.w.t.Fatal(err)
	}
	var all []entry
	for line := range bytes.Lines(raw) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break // it is being written
			}
			f.w.t.Fatalf("the log of the agent %s: %v in %q", f.name, err, line)
		}
		all = append(all, e)
	}
	return all
}

// received counts what it was told: methods, and answers by what they say.
func (f *fake) received() map[string]int {
	f.w.t.Helper()
	out := map[string]int{}
	for _, e := range f.log() {
		switch {
		case e.What != "received":
		case e.Line.Method != "":
			out[e.Line.Method]++
		case e.Line.Error != nil:
			out[fmt.Sprint("error ", e.Line.Error.Code)]++
		default:
			out["answer"]++
		}
	}
	return out
}

// prompts are the texts that it was asked for.
func (f *fake) prompts() []string {
	f.w.t.Helper()
	var out []string
	for _, e := range f.log() {
		if e.Line.Method == "session/prompt" {
			text := ""
			for _, b := range e.Line.Params.Prompt {
				text += b.Text
			}
			out = append(out, text)
		}
	}
	return out
}

// answers are the outcomes that its requests for permission had, in order.
func (f *fake) answers() []string {
	f.w.t.Helper()
	var out []string
	for _, e := range f.log() {
		if e.What == "done" && e.Step == "permission" {
			out = append(out, e.Text)
		}
	}
	return out
}

// pids are its processes, in the order of their start.
func (f *fake) pids() []int {
	f.w.t.Helper()
	var out []int
	for _, e := range f.log() {
		if e.What == "started" {
			out = append(out, e.PID)
		}
	}
	return out
}

// kill kills its newest process, and nothing else.
func (f *fake) kill() {
	f.w.t.Helper()
	pids := f.pids()
	if len(pids) == 0 {
		f.w.t.Fatalf("the agent %s has not begun", f.name)
	}
	pid := pids[len(pids)-1]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		f.w.t.Fatalf("kill the agent %s: %v", f.name, err)
	}
	waitGone(f.w.t, pid)
}

// want fails unless the agent has received so many of each.
func (f *fake) want(want map[string]int) {
	f.w.t.Helper()
	got := f.received()
	for what, n := range want {
		if got[what] != n {
			f.w.t.Errorf("the agent %s received %d of %s, want %d: %v", f.name, got[what], what, n, got)
		}
	}
}

// wantPrompts fails unless each prompt that the agent received holds its words.
func (f *fake) wantPrompts(words ...string) {
	f.w.t.Helper()
	got := f.prompts()
	ok := len(got) == len(words)
	for i := 0; ok && i < len(got); i++ {
		ok = strings.Contains(got[i], words[i])
	}
	if !ok {
		f.w.t.Errorf("the agent %s was asked for %q, want %q", f.name, got, words)
	}
}

// touch makes a file of the workspace, for which an agent waits.
func (w *world) touch(name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// untilFile waits until there is a file in the workspace.
func (w *world) untilFile(name string) {
	w.t.Helper()
	eventually(w.t, "there is the file "+name, func() bool {
		_, err := os.Stat(filepath.Join(w.work, name))
		return err == nil
	})
}

// said is a message of an agent in the journal.
type said struct {
	part     string
	streamed string // its pieces
	cut      bool   // it was never completed
	whole    string // as it was completed, unless that stands in a blob
	bytes    int64  // of that blob
}

// said gives the messages of the agent, in order.
func (j journal) said() []said {
	var ids []string
	var out []said
	for i := range j {
		if j[i].Kind != "message.delta" && j[i].Kind != "message.completed" {
			continue
		}
		var body struct {
			ID   string          `json:"message_id"`
			Role string          `json:"role"`
			Part string          `json:"part"`
			Text json.RawMessage `json:"text"`
		}
		if json.Unmarshal(j[i].Data, &body) != nil || body.Role != "agent" {
			continue
		}
		n := slices.Index(ids, body.ID)
		if n < 0 {
			n = len(ids)
			ids, out = append(ids, body.ID), append(out, said{part: body.Part, cut: true})
		}
		if j[i].Kind == "message.delta" {
			out[n].streamed += j[i].str("text")
			continue
		}
		var blob struct {
			Bytes int64 `json:"bytes"`
		}
		_ = json.Unmarshal(body.Text, &blob) // a text that is short is no object
		out[n].cut, out[n].whole, out[n].bytes = false, j[i].str("text"), blob.Bytes
	}
	return out
}

// wantSaid fails unless the agent has said these texts, in order and byte for byte,
// in pieces and, unless they were cut off, whole.
func wantSaid(w *world, j journal, want ...string) {
	w.t.Helper()
	got := j.said()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			w.t.Errorf("it didn't say %q", tail(want[i], 200))
		case i >= len(want):
			w.t.Errorf("it said %q, which it should not have", tail(got[i].streamed, 200))
		case got[i].streamed != want[i]:
			at := differ(got[i].streamed, want[i])
			w.t.Errorf("message %d has %d bytes in pieces, want %d; they differ at %d: %q", i, len(got[i].streamed), len(want[i]), at, tail(got[i].streamed, 200))
		case !got[i].cut && got[i].whole != want[i] && got[i].bytes != int64(len(want[i])):
			w.t.Errorf("message %d is %q as a whole (%d bytes elsewhere), want %q", i, tail(got[i].whole, 200), got[i].bytes, tail(want[i], 200))
		}
	}
}

// attempt gives the id of a session's newest attempt.
func (j journal) attempt() string {
	all := j.of("attempt.prepared")
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].str("attempt_id")
}

// resolveAttempt says what is to become of an unknown attempt.
func (c *client) resolveAttempt(id, outcome, then string) answer {
	c.w.t.Helper()
	return c.post("/api/v1/attempts/"+id+"/resolution", map[string]string{"outcome": outcome, "then": then})
}

// allow answers all that waits in a session with once.
func (c *client) allow(id string) {
	c.w.t.Helper()
	for _, r := range c.pending(id) {
		c.decide(r.ID, "once", "").want(c.w.t, http.StatusOK)
	}
}
