package acp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/runner/acp"
	"holdfast/runner/tool"
)

// begins is how a script answers initialize, with these capabilities.
func begins(capabilities string) string {
	return `read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"fake","version":"3.2"},"agentCapabilities":` + capabilities + `}}'` + "\n"
}

// opens is how it answers session/new.
const opens = `read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
`

// idles is how it bears with a stop, and answers what is asked next with an error.
const idles = `read -r l; read -r l; echo '{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"what?"}}'
`

// probed is an agent that is a script for sh.
func probed(t *testing.T, body string, as ...func(*acp.Options)) *acp.Agent {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.sh")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	o := acp.Options{Name: "fake", Command: []string{"sh", path}, Env: tool.BaseEnv(os.Environ()), Version: "test", ExitWithin: 20 * time.Second}
	for _, f := range as {
		f(&o)
	}
	return acp.New(o)
}

// report is all that is found, a line each.
func report(t *testing.T, a *acp.Agent, extra ...string) (text string, list []acp.Finding) {
	t.Helper()
	p, err := a.Probe(t.Context(), t.TempDir(), extra...)
	list = a.Findings(p, err, extra...)
	for _, f := range list {
		text += fmt.Sprintf("%s %s: %s | %s\n", f.Health, f.Subject, f.Found, f.Do)
	}
	return text, list
}

func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q isn't said:\n%s", w, text)
		}
	}
}

// What an agent offers is told, and what can be tried without a model was tried.
// proves REC-12
func TestProbe_SaysWhatAnAgentIsAndCan(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "second")
	a := probed(t, `if [ -e `+path+` ]; then
`+begins(`{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true},"sessionCapabilities":{"resume":{},"list":{},"delete":{}}}`)+`
read -r l; case $l in *session/resume*s1*) echo '{"jsonrpc":"2.0","id":2,"result":null}';; *) exit 9;; esac
read -r l; case $l in *session/delete*s1*) echo '{"jsonrpc":"2.0","id":3,"result":{}}';; *) exit 9;; esac
read -r l || exit 0
fi
: > `+path+`
`+begins(`{"loadSession":true,"promptCapabilities":{"image":true,"embeddedContext":true},"mcpCapabilities":{"http":true},"sessionCapabilities":{"resume":{},"list":{},"delete":{}}}`)+`
read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1","modes":{"currentModeId":"b","availableModes":[{"id":"a","name":"Ask"},{"id":"b","name":"Build"}]},
"models":{"currentModelId":"m1","availableModels":[{"modelId":"m1","name":"One"}]},
"configOptions":[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"m2","options":[{"value":"m2","name":"Two"},{"value":"m3","name":"Three"}]},{"id":"fast","name":"Fast","type":"boolean","currentValue":true}]}}' | tr -d '\n'; echo
read -r l; case $l in *session/cancel*) ;; *) exit 9;; esac
read -r l; case $l in *session/list*) echo '{"jsonrpc":"2.0","id":3,"result":{"sessions":[]}}';; *) exit 9;; esac
read -r l || exit 0`)
	text, list := report(t, a)
	wants(
		t, text, "ok start: “fake 3.2”, ACP 1", "ok session: opens a session", "no model was asked", "text, images, embedded files; Holdfast sends it text", "stdio, http;",
		"ok modes: now “Build”; it offers “Ask”, “Build”", "ok option “Model”: now “Two”; it offers “Two”, “Three”", "ok option “Fast”: now “true”", "after the turn",
		"has 20s", "Tried: told to stop while nothing ran, it still answers", "ok pause: goes on with a conversation in another process. Tried",
		"ok restart of the server: interrupts nothing", "never sent again", "ok end: ends by itself", "had the agent delete it again", "judged by the session's rules",
	)
	if strings.Contains(text, "One") {
		t.Errorf("a model is told twice:\n%s", text)
	}
	for _, f := range list {
		if f.Health != acp.Healthy {
			t.Errorf("%+v", f)
		}
	}
}

// proves REC-12
func TestProbe_SaysWhatAnAgentCannot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		words []string
	}{
		"no way to go on": {begins(`{}`) + opens + idles + `read -r l`, []string{"warning pause: can't go on", "--agent-idle", "may stay in the agent's own list"}},
		"it forgets what was empty": {
			begins(`{"loadSession":true}`) + `read -r l; case $l in *session/load*) echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"none such"}}'; read -r l; exit 0;; esac
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
` + idles + `read -r l`,
			[]string{"ok pause: says that it goes on", "didn't remember a session in which nothing was said", "none such", "didn't keep"},
		},
		"it dies when it is to go on": {
			begins(`{"loadSession":true}`) + `read -r l; case $l in *session/load*) echo broken >&2; exit 4;; esac
echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
` + idles + `read -r l`,
			[]string{"warning pause: says that it goes on", "it did not: it has ended with exit code 4; it wrote: “broken”"},
		},
		"a stop ends it":     {begins(`{}`) + opens + `read -r l; exit 7`, []string{"warning stop:", "did not answer any more: it has ended with exit code 7"}},
		"it asks, and waits": {begins(`{}`) + opens + `echo '{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file","params":{}}'; read -r l; read -r l; read -r l; case $l in *-32601*) ;; *) exit 5;; esac; echo '{"jsonrpc":"2.0","id":3,"result":{}}'; read -r l`, []string{"it still answers"}},
		"it writes rubbish":  {`echo 'Welcome!'` + "\n" + begins(`{}`) + opens + idles + `read -r l`, []string{"warning output: it writes to its standard output what isn't ACP, which is passed over: “Welcome!”"}},
		"it needs a sign-in": {
			`read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"Log in","description":"Run fake login"}]}}'
read -r l; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}'; read -r l`,
			[]string{"wrong session: opens no session before it is signed in: “Authentication required”", "with --agent-env", "“Log in” (“Run fake login”)"},
		},
		"it opens none": {begins(`{}`) + `read -r l; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no disk"}}'; read -r l`, []string{"wrong session: opens no session: “no disk”"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, _ := report(t, probed(t, c.body))
			wants(t, text, c.words...)
			if strings.HasPrefix(name, "a stop") && strings.Contains(text, "ends by itself") {
				t.Errorf("it is praised for its end:\n%s", text)
			}
		})
	}
}

// An agent that can't be worked with: a sentence, what to do, in time, and nothing of it
// is left.
func TestProbe_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	soon := func(o *acp.Options) { o.OpenWithin, o.ExitWithin = 2*time.Second, 100*time.Millisecond }
	for name, c := range map[string]struct {
		body  string
		as    []func(*acp.Options)
		words []string
	}{
		"exits at once":        {`echo 'no key' >&2; exit 3`, nil, []string{"wrong start: it has ended with exit code 3; it wrote: “no key”", "try its command by hand: sh "}},
		"is killed":            {`kill -9 $$`, nil, []string{"wrong start: it was ended by SIGKILL"}},
		"prints rubbish":       {`echo 'Usage: none'; exit 0`, nil, []string{"wrong start: it has ended with exit code 0; it wrote: “Usage: none”"}},
		"hangs":                {`echo loading >&2; sleep 60`, []func(*acp.Options){soon}, []string{"wrong start: the agent did not answer in time; it wrote: “loading”"}},
		"hangs and won't end":  {`trap '' TERM; while :; do sleep 60; done`, []func(*acp.Options){soon}, []string{"wrong start: the agent did not answer in time"}},
		"hangs at its session": {begins(`{}`) + `sleep 60`, []func(*acp.Options){soon}, []string{"ok start: “fake 3.2”", "wrong session: the agent did not answer in time"}},
		"another version":      {`read -r l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":7}}'; read -r l`, nil, []string{"wrong start: it speaks version 7 of ACP; this server speaks 1", "install a version"}},
		"refuses to begin":     {`read -r l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no disk"}}'; read -r l`, nil, []string{"wrong start: it could not begin: “no disk”"}},
		"begins with rubbish":  {`read -r l; echo '{"jsonrpc":"2.0","id":1,"result":[]}'; read -r l`, nil, []string{"wrong start: its first answer can't be read"}},
		"opens no id":          {begins(`{}`) + `read -r l; echo '{"jsonrpc":"2.0","id":2,"result":{}}'; read -r l`, nil, []string{"wrong session:"}},
		"a huge line":          {`head -c 20000000 /dev/zero | tr '\0' x; echo; sleep 60`, nil, []string{"wrong start: it wrote a line of more than 16 MB"}},
		"floods":               {`yes`, nil, []string{"wrong start: it wrote more than 10000 lines that aren't ACP; it wrote: “… y y"}},
		"floods stderr":        {`yes >&2`, nil, []string{"wrong start: it wrote more than 64 MB"}},
		"is a relative path":   {``, []func(*acp.Options){func(o *acp.Options) { o.Command = []string{"bin/agent", "acp"} }}, []string{"warning program: its program bin/agent is a relative path: it is looked for in the workspace of each session", "name its file by its whole path", "wrong start: "}},
		"is missing":           {``, []func(*acp.Options){func(o *acp.Options) { o.Command = []string{"no-such-agent", "acp"} }}, []string{"wrong program: its program no-such-agent was not found on PATH", "--agent fake="}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := probed(t, c.body, c.as...)
			text, list := report(t, a)
			wants(t, text, c.words...)
			for _, f := range list {
				if len(f.Found) > 2000 || len(f.Do) > 2000 {
					t.Errorf("%s: %d and %d bytes", f.Subject, len(f.Found), len(f.Do))
				}
			}
		})
	}
}

// A huge answer that is one is read, and told in bounds.
func TestProbe_HugeAnswer(t *testing.T) {
	t.Parallel()
	text, _ := report(t, probed(t, `read -r l; printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"'; head -c 12000000 /dev/zero | tr '\0' x; echo '","version":"1"}}}'
`+opens+idles+`read -r l`))
	wants(t, text, "ok start: “xxx", "ok session")
	if len(text) > 20_000 {
		t.Errorf("%d bytes are told", len(text))
	}
}

// What an agent says holds no secret of its environment, nor what looks like one.
// proves OWN-3
func TestProbe_HidesSecrets(t *testing.T) {
	t.Parallel()
	a := probed(t, `echo "bad key $MODEL_KEY, $OWN, sk-ant-0123456789abcdef, Bearer abcdefghijkl, http://me:hunter22@proxy" >&2; exit 1`, func(o *acp.Options) {
		o.Env = append(o.Env, "MODEL_KEY=the-servers-key")
		o.Command = append(o.Command, "--api-key", "on-the-line", "--token=also-there", "HOST_PASSWORD=and-this", "plain")
	})
	text, _ := report(t, a, "OWN=the-owners-own")
	wants(t, text, "[hidden]", "plain", "bad key")
	for _, secret := range []string{"the-servers-key", "the-owners-own", "0123456789abcdef", "abcdefghijkl", "hunter22", "on-the-line", "also-there", "and-this"} {
		if strings.Contains(text+a.CommandLine(), secret) {
			t.Errorf("%s is told:\n%s\n%s", secret, text, a.CommandLine())
		}
	}
}

// Whether its program is there is known without starting it.
func TestAgent_Program(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "agent")
	a := acp.New(acp.Options{Name: "a", Command: []string{"agent"}, Env: []string{"PATH=" + dir}})
	wants(t, a.Unavailable(), "its program agent was not found on PATH")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wants(t, a.Unavailable(), "its program agent was found on PATH, but this server may not execute it")
	if err := os.Chmod(file, 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := a.Program(); found != file || err != nil || a.Unavailable() != "" {
		t.Errorf("it is found as %q, %v", found, err)
	}
	wants(t, acp.New(acp.Options{Name: "a", Command: []string{dir}}).Unavailable(), "may not execute it")
	if near := acp.New(acp.Options{Name: "a", Command: []string{"bin/agent"}}); !near.InWorkspace() || near.Unavailable() != "" || a.InWorkspace() {
		t.Error("it isn't known which program is looked for in the workspaces")
	}
}

// All that an agent started has ended when it was looked at, also what detached itself,
// when the look is given up, and when its shim is killed, as far as anything leads to it
// then.
func TestProbe_LeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end    string
		leaves int
		gives  bool
	}{"it ends": {`exit 1`, 3, false}, "it is given up": {`echo all > pids.all; sleep 600`, 3, true}, "its shim is killed": {`kill -9 $PPID; sleep 600`, 2, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pids := filepath.Join(dir, "pids")
			if err := unix.Mkfifo(pids+".all", 0o600); err != nil {
				t.Fatal(err)
			}
			a := probed(t, `setsid sh -c 'echo $$ >> `+pids+`; exec sleep 600' &
(sleep 600 & echo $! >> `+pids+`)
[ `+strconv.Itoa(c.leaves)+` = 2 ] || env -i setsid sh -c 'sh -c "echo \$\$ >> `+pids+`; exec sleep 600" & exit 0'
while [ "$(wc -l < `+pids+`)" != `+strconv.Itoa(c.leaves)+` ]; do sleep 0.01; done
`+c.end)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			gone := errors.New("given up")
			if c.gives {
				go func() {
					_, _ = os.ReadFile(pids + ".all") // until the script has written to it
					cancel(gone)
				}()
			}
			_, err := a.Probe(ctx, dir)
			if c.gives != errors.Is(err, gone) {
				t.Errorf("the look ended: %v", err)
			}
			raw, err := os.ReadFile(pids)
			list := strings.Fields(string(raw))
			if err != nil || len(list) != c.leaves {
				t.Fatalf("%q, %v", raw, err)
			}
			slices.Sort(list)
			for _, field := range list {
				pid, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(stat), ") Z ") && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
					t.Errorf("%d is left: %s", pid, stat)
				}
			}
		})
	}
}
