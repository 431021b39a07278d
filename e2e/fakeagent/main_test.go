package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/runner/acp/wire"
)

// patience fails a test that waits in vain; nothing waits for it to pass.
const patience = 2 * time.Minute

// agentVariable makes this binary the agent.
const agentVariable = "FAKEAGENT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// world is a folder with a script, in which agents run one after another.
type world struct {
	t       *testing.T
	dir     string
	forgets bool // agents are given no state file
}

// newWorld makes one. In the script DIR is the world's folder; "" is no script.
func newWorld(t *testing.T, script string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	if script != "" {
		mustWrite(t, w.path("script.json"), strings.ReplaceAll(script, "DIR", w.dir))
	}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// log is what the agents have logged, each line as "what step text exit", or what
// was received as "received method".
func (w *world) log() []string {
	w.t.Helper()
	raw, err := os.ReadFile(w.path("log"))
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for line := range bytes.Lines(raw) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.PID == 0 {
			w.t.Fatalf("log line %q: %v", line, err)
		}
		words := []string{e.What, e.Step, e.Text}
		if e.Exit != nil {
			words = append(words, fmt.Sprint(*e.Exit))
		}
		if e.Line != nil {
			m, err := wire.Parse(e.Line)
			if err != nil {
				w.t.Fatal(err)
			}
			words = append(words, m.Method, strings.TrimPrefix(string(m.Result), "null"))
		}
		all = append(all, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	}
	return all
}

// agentProcess is one agent, and its client.
type agentProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    chan received // closed at the end of stdout
	stderr *bytes.Buffer
	ended  bool
	nextID int64
	// choose is the option by which permission requests are answered; "": cancelled.
	choose string
}

// received is a line from the agent.
type received struct {
	raw []byte
	m   wire.Message
	err error
}

func (w *world) start() *agentProcess {
	w.t.Helper()
	a := &agentProcess{t: w.t, out: make(chan received, 10_000), stderr: &bytes.Buffer{}, choose: "once"}
	a.cmd = exec.CommandContext(context.Background(), os.Args[0])
	a.cmd.Dir = w.dir
	a.cmd.Env = append(os.Environ(), agentVariable+"=1", "FAKEAGENT_LOG="+w.path("log"))
	if _, err := os.Stat(w.path("script.json")); err == nil {
		a.cmd.Env = append(a.cmd.Env, "FAKEAGENT_SCRIPT="+w.path("script.json"))
	}
	if !w.forgets {
		a.cmd.Env = append(a.cmd.Env, "FAKEAGENT_STATE="+w.path("state"))
	}
	a.cmd.Stderr = a.stderr
	stdin, err1 := a.cmd.StdinPipe()
	stdout, err2 := a.cmd.StdoutPipe()
	if err := firstOf(err1, err2, a.cmd.Start()); err != nil {
		w.t.Fatal(err)
	}
	a.in = stdin
	go a.read(stdout)
	w.t.Cleanup(func() { a.kill() })
	return a
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *agentProcess) read(stdout io.Reader) {
	defer close(a.out)
	var lines wire.Lines
	buf := make([]byte, 4096)
	for {
		n, err := stdout.Read(buf)
		got, _ := lines.Feed(buf[:n])
		for _, line := range got {
			m, err := wire.Parse(line.Bytes)
			a.out <- received{line.Bytes, m, err}
		}
		if err != nil {
			return
		}
	}
}

func (a *agentProcess) kill() {
	_ = a.cmd.Process.Kill()
	a.wait()
}

// wait waits for the process's end, after what it has written was read.
func (a *agentProcess) wait() syscall.WaitStatus {
	if !a.ended {
		for range a.out { // until it is closed
		}
		_ = a.cmd.Wait() // its state says how
		a.ended = true
	}
	return a.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

func (a *agentProcess) write(line []byte, err error) {
	a.t.Helper()
	if err == nil {
		_, err = a.in.Write(line)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// next is the next line; false: there are no more.
func (a *agentProcess) next() (received, bool) {
	a.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r, ok := <-a.out:
		return r, ok
	case <-timer.C:
		a.t.Fatal("the agent says nothing")
		return received{}, false
	}
}

// send makes a request, and returns its id.
func (a *agentProcess) send(method string, params any) wire.ID {
	a.t.Helper()
	a.nextID++
	a.write(wire.Request(100+a.nextID, method, params))
	return wire.NumberID(100 + a.nextID)
}

// until reads to the answer of a request, answers what the agent asks, and returns
// all lines, told by words.
func (a *agentProcess) until(id wire.ID) (told []string, answer wire.Message) {
	a.t.Helper()
	for {
		r, ok := a.next()
		if !ok {
			return append(told, "end"), answer
		}
		told = append(told, tell(r))
		if r.err == nil && r.m.Kind == wire.KindRequest {
			a.reply(r.m)
		}
		if r.err == nil && r.m.Kind == wire.KindResponse && r.m.ID == id {
			return told, r.m
		}
	}
}

// reply answers a request of the agent.
func (a *agentProcess) reply(m wire.Message) {
	switch {
	case m.Method != wire.MethodRequestPermission:
		a.write(wire.ErrorAnswer(m.ID, wire.CodeMethodNotFound, "no"))
	case a.choose == "":
		a.write(wire.Result(m.ID, wire.Cancelled()))
	default:
		a.write(wire.Result(m.ID, wire.Selected(a.choose)))
	}
}

// tell says what a line is, in few words.
func tell(r received) string {
	switch {
	case r.err != nil:
		return "rubbish " + string(r.raw)
	case r.m.Kind == wire.KindRequest:
		return fmt.Sprintf("request %s %s", r.m.ID, r.m.Method)
	case r.m.Err != nil:
		return fmt.Sprintf("error %d %s", r.m.Err.Code, r.m.Err.Message)
	case r.m.Kind == wire.KindResponse:
		result, _ := wire.Decode[struct {
			StopReason string `json:"stopReason"`
		}](r.m.Result)
		return strings.TrimSpace("answer " + result.StopReason)
	}
	_, u := wire.ParseUpdate(r.m.Params)
	return tellUpdate(u)
}

func tellUpdate(u wire.Update) string {
	switch u := u.(type) {
	case wire.Chunk:
		kind := map[string]string{wire.AgentMessage: "says", wire.AgentThought: "thinks", wire.UserMessage: "user"}[u.Kind]
		return kind + " " + u.Content.(wire.TextBlock).Text
	case wire.ToolCall:
		told := u.Kind + " " + u.ToolCallID
		if u.Status != nil {
			told += " " + *u.Status
		}
		for _, c := range u.Content {
			told += " " + c.(wire.ToolBlock).Content.(wire.TextBlock).Text
		}
		return told
	case wire.UnknownUpdate:
		return "unknown " + u.Kind
	default:
		return fmt.Sprintf("%T", u)
	}
}

// open begins a session.
func (a *agentProcess) open() string {
	a.t.Helper()
	_, answer := a.until(a.send(wire.MethodInitialize, wire.InitializeParams{ProtocolVersion: 1}))
	if _, err := wire.Decode[wire.InitializeResult](answer.Result); err != nil {
		a.t.Fatalf("initialize: %v", err)
	}
	_, answer = a.until(a.send(wire.MethodSessionNew, wire.SessionParams{Cwd: "/"}))
	result, err := wire.Decode[wire.NewSessionResult](answer.Result)
	if err != nil {
		a.t.Fatalf("session/new: %v", err)
	}
	return result.SessionID
}

func (a *agentProcess) prompt(session, text string) wire.ID {
	a.t.Helper()
	return a.send(wire.MethodSessionPrompt, wire.PromptParams{SessionID: session, Prompt: []wire.Block{wire.TextBlock{Text: text}}})
}

func (a *agentProcess) cancel(session string) {
	a.t.Helper()
	a.write(wire.Notify(wire.MethodSessionCancel, wire.CancelParams{SessionID: session}))
}

// expect reads one line, which must be told so.
func (a *agentProcess) expect(want string) received {
	a.t.Helper()
	r, ok := a.next()
	if got := tell(r); !ok || got != want {
		a.t.Fatalf("got %q, want %q\n%s", got, want, a.stderr)
	}
	return r
}
