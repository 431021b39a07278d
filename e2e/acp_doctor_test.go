package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// diagnosed is an agent of a kind, and what the doctor says of it.
type diagnosed struct {
	name   string
	script string // "" the one of mend
	is     string // its program; "" the agent, "-" there is none, "x" it can't be executed
	code   int
	words  []string
	env    []string
}

const (
	resumes = `"capabilities": {"loadSession": true, "sessionCapabilities": {"resume": {}}}`
	wide300 = "printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"\\u001b[31m'; head -c 12000000 /dev/zero | tr '\\0' x; echo '\",\"version\":\"1\"}}}'; sleep 60"
)

var diagnoses = []diagnosed{
	{name: "well", script: `{` + resumes + `}`, words: []string{"“fakeagent 1”, ACP 1", "opens a session", "no model was asked", "goes on with a conversation in another process. Tried with one", "it still answers", "interrupts nothing", "never sent again", "0 wrong"}},
	{name: "forgetful", script: `{"answers": {"session/load": {"error": {"code": -32002, "message": "none such"}}}, "capabilities": {"loadSession": true}}`, words: []string{"didn't remember a session in which nothing was said", "none such", "0 wrong"}},
	{name: "poor", script: `{"capabilities": {}, "on_eof": "ignore"}`, words: []string{"can't go on with a conversation once its process has ended", "--agent-idle", "doesn't end by itself", "1 with a warning"}},
	{name: "missing", is: "-", code: 1, words: []string{"was not found", "To do: install it"}},
	{name: "forbidden", is: "x", code: 1, words: []string{"may not execute it", "To do: make it executable"}},
	{name: "exits", is: "echo 'no key' >&2; exit 3", code: 1, words: []string{"it has ended with exit code 3; it wrote: “no key”", "try its command by hand"}},
	{name: "rubbish", is: "echo Usage: none; exit 0", code: 1, words: []string{"exit code 0; it wrote: “Usage: none”"}},
	{name: "old", script: `{"protocol_version": 7}`, code: 1, words: []string{"it speaks version 7 of ACP; this server speaks 1"}},
	{
		name: "signs-in", script: `{"auth_methods": [{"id": "a", "name": "Log in", "description": "Run agent login"}], "answers": {"session/new": {"error": {"code": -32000, "message": "Authentication required"}}}}`,
		code: 1, words: []string{"opens no session before it is signed in: “Authentication required”", "“Log in” (“Run agent login”)", "--agent-env"},
	},
	{name: "refuses", script: `{"answers": {"initialize": {"error": {"code": -32603, "message": "no \u001b[31mdisk"}}}}`, code: 1, words: []string{`it could not begin: “no \x1b[31mdisk”`}},
	{name: "loud", is: "yes >&2", code: 1, words: []string{"it wrote more than 64 MB"}},
	{name: "huge", is: "read -r l; " + wide300[:strings.Index(wide300, "; sleep")] + "; exit 2", code: 1, words: []string{`\x1b[31mxxx`, "wrong"}},
	{name: "secret", is: "echo the key is $TEST_KEY >&2; exit 1", env: []string{"TEST_KEY=very-secret-value"}, code: 1, words: []string{"the key is [hidden]"}},
}

// The doctor says what an agent is, what may be promised of it and what is wrong with
// it, and leaves nothing behind.
// proves REC-12 OWN-3
func TestACP_TheDoctorLooksAtAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	for _, d := range diagnoses {
		t.Run(d.name, func(t *testing.T) {
			script := d.script
			if script == "" {
				script = mend
			}
			f := w.fake(d.name, script)
			switch {
			case d.is == "-":
				if err := os.Remove(f.program); err != nil {
					t.Fatal(err)
				}
			case d.is == "x":
				if err := os.Chmod(f.program, 0o600); err != nil {
					t.Fatal(err)
				}
			case d.is != "":
				f.is(d.is)
			}
			tmp := t.TempDir()
			o := execute(t, w.dir, "", append([]string{"TMPDIR=" + tmp}, d.env...), "doctor", "agent", d.name, "--agent", d.name+"="+f.program, "--agent-env", "TEST_KEY")
			if o.code != d.code {
				t.Errorf("exit %d, want %d: %s", o.code, d.code, o.err)
			}
			said := o.words()
			for _, want := range d.words {
				if !strings.Contains(said, want) {
					t.Errorf("it doesn't say %q:\n%s", want, o.out)
				}
			}
			if strings.ContainsAny(o.out, "\x1b\x07") || strings.Contains(o.out, "very-secret") || len(o.out) > 20_000 {
				t.Errorf("it prints %d bytes, or what a terminal obeys, or a secret: %.2000q", len(o.out), o.out)
			}
			left, err := os.ReadDir(tmp)
			if err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
			for _, pid := range f.pids() {
				if err := syscall.Kill(pid, 0); err == nil {
					t.Errorf("process %d of the agent is left", pid)
				}
			}
			if n := f.received()["session/prompt"]; n > 0 {
				t.Errorf("it was sent %d prompts", n)
			}
		})
	}
}

// A signal ends the doctor, and the agent that it looks at.
func TestACP_TheDoctorIsGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	f := w.fake("hangs", `{"answers": {"initialize": {"hang": true}}}`)
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), binary, "doctor", "agent", "hangs", "--agent", "hangs="+f.program)
	cmd.Dir, cmd.Env = w.dir, environment(w.dir, []string{"TMPDIR=" + tmp})
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the agent was asked", func() bool { return f.received()["initialize"] > 0 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended: %v\n%s", err, out.String())
	}
	waitGone(t, f.pids()[0])
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// A look that is killed leaves nothing running, also of what the agent has detached.
//
// proves OWN-3
func TestACP_AKilledLookLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	f := w.fake("hangs", mend)
	pids, tmp := filepath.Join(w.dir, "pids"), t.TempDir()
	f.is(`setsid sh -c 'echo $$ >> ` + pids + `; exec sleep 600' &
env -i setsid sh -c 'sh -c "echo \$\$ >> ` + pids + `; exec sleep 600" & exit 0'
echo $$ >> ` + pids + `; exec sleep 600`)
	cmd := exec.CommandContext(t.Context(), binary, "doctor", "agent", "hangs", "--agent", "hangs="+f.program)
	cmd.Dir, cmd.Env = w.dir, environment(w.dir, []string{"TMPDIR=" + tmp})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var started []string
	eventually(t, "the agent has started all", func() bool {
		raw, _ := os.ReadFile(pids)
		started = strings.Fields(string(raw))
		return len(started) == 3
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range started {
		waitGone(t, atoi(t, pid))
	}
	eventually(t, "its shim has recorded that", func() bool {
		list, err := filepath.Glob(filepath.Join(tmp, "*", "*", "exit.json"))
		return err == nil && len(list) == 1
	})
}

// What the API says of an agent is so at the time of asking.
func TestACP_TheAgentsAreAsTheyAreNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sqlite")
	f := w.fake("here", mend)
	s := w.serve(agents(f))
	says := func(want string) {
		t.Helper()
		if body := string(s.get("/api/v1/agents").want(t, http.StatusOK).body); !strings.Contains(body, want) {
			t.Errorf("it says %s, want %s", body, want)
		}
	}
	says(`{"name":"here","kind":"acp","available":true}`)
	if err := os.Chmod(f.program, 0o600); err != nil {
		t.Fatal(err)
	}
	says(`"available":false,"reason":"its program ` + f.program + ` was found, but this server may not execute it"`)
	if err := os.Remove(f.program); err != nil {
		t.Fatal(err)
	}
	says(`"available":false,"reason":"its program ` + f.program + ` was not found"`)
	f.is("exec " + agentBinary)
	says(`{"name":"here","kind":"acp","available":true}`)
}
