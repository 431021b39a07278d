package seed

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"holdfast/journal"
)

// steps writes a mission of sh blocks: pairs of a heading, which may be followed
// by options of the block after a bar, and a script.
func steps(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		heading, options, _ := strings.Cut(pairs[i], "|")
		b.WriteString("## " + heading + "\n\n```sh" + options + "\n" + pairs[i+1] + "\n```\n\n")
	}
	return b.String()
}

// outputs are commands whose output is hard to show.
var outputs = steps(
	"Colours", `printf '\033[31mred\033[0m \033[1;32mbold green\033[0m \033[38;5;208morange\033[0m \033[48;2;10;20;30mtrue colour\033[0m\n'`,
	"One line of 1 MB", `yes 'word ' | head -c 1000000 | tr '\n' ' '; echo`,
	"A character that is cut", `printf 'a smile: \360\237\230'`,
	"NUL", `printf 'before\000after\n'`,
	"Colours that are broken", `printf 'begun \033[38;5 and never ended\n\033[\033]0;a title without an end\n\033[999;999H\033[2Jmoved\n\033[31m'`,
	"Markup", `echo '<img src=x onerror="alert(1)"><script>alert(2)</script> &amp; <b>bold</b>'`,
	"Direction", `printf 'evil \342\200\256gpj.exe\342\200\254 and \342\201\246hidden\342\201\251\n'`,
	"Both streams", `echo to standard output; echo to standard error >&2`,
	"Nothing", `true`,
)

const sleeps = "sleep 3600"

// firstServer makes what comes to rest by itself, then is lost while three
// commands with an effect run.
func (f *filling) firstServer(ctx context.Context) error {
	return f.serving(ctx, "server-1", []string{"--max-running", "8"}, func(ctx context.Context) error {
		for _, do := range []func(context.Context) error{f.plain, f.waiting, f.limited, f.stopped, f.blocked, f.inTheAir} {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// made makes a session and waits until it rests in a state.
func (f *filling) made(ctx context.Context, name string, state journal.ExecutionState, m mission) (string, error) {
	id, err := f.c.create(ctx, m)
	if err != nil {
		return "", err
	}
	f.add(name, state, id)
	return id, f.c.settled(ctx, id, state)
}

func (f *filling) plain(ctx context.Context) error {
	done := steps("Look", "ls -la", "Build", "mkdir -p build && echo built > build/result.txt", "Check", "cat build/result.txt")
	_, err1 := f.made(ctx, "ready", journal.StateReady, mission{title: "Build the release notes", prompt: "# Build the release notes\n\nDone when `build/result.txt` says so.\n\n" + done})
	_, err2 := f.made(ctx, "ready_output", journal.StateReady, mission{title: "Print what is hard to show <b>&amp;</b>", prompt: outputs})
	_, err3 := f.made(ctx, "ready_large_output", journal.StateReady, mission{title: "Print 10 MiB", prompt: steps("Print", "yes 'the quick brown fox jumps over the lazy dog' | head -c 10485760")})
	_, err4 := f.made(ctx, "failed", journal.StateFailed, mission{title: "Import the price list", prompt: steps("Find it", "echo looking", "Import", "echo 'line 7: not a number' >&2; exit 3", "Publish", "echo published")})
	id, err5 := f.made(ctx, "closed", journal.StateReady, mission{title: "Upgrade the linter", prompt: steps("Upgrade", "echo upgraded")})
	f.r.Sessions[len(f.r.Sessions)-1].State = journal.StateClosed
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	return f.c.call(ctx, http.MethodPost, "/api/v1/sessions/"+id+"/archive", nil, nil)
}

func (f *filling) waiting(ctx context.Context) error {
	var report strings.Builder
	for range 2000 {
		report.WriteString("a line of the report that is to be written, as it will stand there\n")
	}
	for _, w := range []struct {
		name, title, script string
		requests            int
	}{
		{"waiting", "Ask before a command", "echo hello", 1},
		{"waiting_two", "Ask twice for one command", "echo hello >> greetings.txt", 2},
		{"waiting_long", "Ask for something very long", "cat > report.txt <<'EOF'\n" + report.String() + "EOF", 1},
		{"waiting_bidi", "Ask for what doesn't look like what it is", "echo 'granted \u202e\u2066// only for admins\u2069 \u2066' # \u200bnothing \u202dhere", 1},
	} {
		id, err := f.made(ctx, w.name, journal.StateWaiting, mission{title: w.title, asks: true, prompt: steps("Do it", w.script, "And then", "echo done")})
		if err == nil {
			err = f.c.watch(ctx, id, "it asks", func(v view) bool { return v.PendingPermissions >= w.requests })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limited fails first, then may take one step more.
func (f *filling) limited(ctx context.Context) error {
	id, err := f.made(ctx, "limit_reached", journal.StateFailed, mission{title: "Go on for one step", prompt: steps("Fail", "exit 1", "One", "echo one", "Two", "echo two")})
	if err != nil {
		return err
	}
	f.r.Sessions[len(f.r.Sessions)-1].State = journal.StateLimitReached
	if err := f.c.call(ctx, http.MethodPost, "/api/v1/sessions/"+id+"/continuation", map[string]any{"limits": map[string]int{"steps": 1}}, nil); err != nil {
		return err
	}
	return f.c.settled(ctx, id, journal.StateLimitReached)
}

// stopped has two messages that are held.
func (f *filling) stopped(ctx context.Context) error {
	id, err := f.c.create(ctx, mission{title: "Stop in the middle", prompt: steps("Begin", "echo begun", "Take long", sleeps)})
	if err != nil {
		return err
	}
	f.add("stopped", journal.StateStopped, id)
	if _, err := f.c.dispatched(ctx, id, 0); err != nil {
		return err
	}
	for _, text := range []string{"When you are done, " + steps("Tidy", "echo tidy"), "And then " + steps("Report", "echo report")} {
		if _, err := f.c.prompt(ctx, id, text); err != nil {
			return err
		}
	}
	if err := f.c.call(ctx, http.MethodPost, "/api/v1/sessions/"+id+"/interruption", nil, nil); err != nil {
		return err
	}
	return f.c.settled(ctx, id, journal.StateStopped)
}

// blocked loses its folder before it is asked for anything.
func (f *filling) blocked(ctx context.Context) error {
	folder := filepath.Join(f.r.Workspaces, "gone")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	id, err := f.c.create(ctx, mission{title: "Work in a folder that is gone", folder: "gone"})
	if err != nil {
		return err
	}
	f.add("blocked", journal.StateBlocked, id)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if _, err := f.c.prompt(ctx, id, steps("Look", "ls")); err != nil {
		return err
	}
	return f.c.settled(ctx, id, journal.StateBlocked)
}

// inTheAir leaves three commands with an effect running.
func (f *filling) inTheAir(ctx context.Context) error {
	for _, u := range []struct {
		name, script string
		output       int64
	}{
		{"uncertain", "touch began; " + sleeps, 0},
		{"uncertain_output", "for n in 1 2 3; do echo \"deploying part $n of 9\"; done; printf '\\033[33mwaiting for the cluster\\033[0m\\n' >&2; " + sleeps, 90},
		{"ready_reconciled", "echo transferring; " + sleeps, 13},
	} {
		id, err := f.c.create(ctx, mission{title: "Lose the server: " + u.name, prompt: steps("Prepare", "echo prepared", "Deploy", u.script, "Tell", "echo told")})
		if err != nil {
			return err
		}
		f.add(u.name, journal.StateUncertain, id)
		// The step before has ended, and is not what was found.
		if err := until(ctx, "it has prepared", func() (bool, error) {
			_, err := f.c.dispatched(ctx, id, u.output)
			return err == nil && f.steps(ctx, id) == 2, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// steps counts the steps that a session has begun.
func (f *filling) steps(ctx context.Context, id string) int {
	var page struct {
		Events []struct {
			Kind journal.Kind `json:"kind"`
		} `json:"events"`
	}
	if f.c.call(ctx, http.MethodGet, "/api/v1/sessions/"+id+"/events?limit=1000", nil, &page) != nil {
		return 0 // it is asked again
	}
	n := 0
	for _, e := range page.Events {
		if e.Kind == journal.KindCallDispatched {
			n++
		}
	}
	return n
}

// secondServer has one place. It recovers what the first has lost, resolves one
// of it, then runs one session while others wait for the place.
func (f *filling) secondServer(ctx context.Context) error {
	return f.serving(ctx, "server-2", nil, func(ctx context.Context) error {
		for _, name := range []string{"uncertain", "uncertain_output", "ready_reconciled"} {
			if err := f.c.settled(ctx, f.r.ID(name), journal.StateUncertain); err != nil {
				return err
			}
		}
		if err := f.reconcile(ctx); err != nil {
			return err
		}
		return f.places(ctx)
	})
}

func (f *filling) reconcile(ctx context.Context) error {
	id := f.r.ID("ready_reconciled")
	var list struct {
		Items []struct {
			ID    string            `json:"id"`
			State journal.CallState `json:"state"`
		} `json:"items"`
	}
	if err := f.c.call(ctx, http.MethodGet, "/api/v1/sessions/"+id+"/calls", nil, &list); err != nil {
		return err
	}
	for _, call := range list.Items {
		if call.State != journal.CallIsUnknown {
			continue
		}
		word := map[string]string{"outcome": "happened", "evidence": "The receiver's log shows the transfer at 10:41,\nwith the whole amount.", "then": "continue"}
		if err := f.c.call(ctx, http.MethodPost, "/api/v1/calls/"+call.ID+"/resolution", word, nil); err != nil {
			return err
		}
	}
	for i := range f.r.Sessions {
		if f.r.Sessions[i].ID == id {
			f.r.Sessions[i].State = journal.StateReady
		}
	}
	return f.c.settled(ctx, id, journal.StateReady)
}

// places lets one session take the only place for hours. Its long steps only
// read, so they are run again after a loss; one that has an effect stands before
// them, so that its claim is in phase safe and nothing is said of that loss. Their
// shells halt until their time is up: a killed server takes its shells along, but
// not what those have started, such as a sleep.
func (f *filling) places(ctx context.Context) error {
	long := []string{"Begin", "echo begun"}
	for range 9 {
		long = append(long, "Watch| effect=read timeout=25m on-error=continue", "kill -STOP $$")
	}
	running, err := f.c.create(ctx, mission{title: "Watch the queue", prompt: steps(long...)})
	if err != nil {
		return err
	}
	f.add("running", journal.StateRunning, running)
	if err := until(ctx, "it watches", func() (bool, error) {
		_, err := f.c.dispatched(ctx, running, 0)
		return err == nil && f.steps(ctx, running) == 2, err
	}); err != nil {
		return err
	}
	idle, err := f.c.create(ctx, mission{title: "Think again"})
	if err != nil {
		return err
	}
	f.add("idle", journal.StateIdle, idle)
	prompt, err := f.c.prompt(ctx, idle, steps("Do it", "echo done"))
	if err == nil {
		err = f.c.call(ctx, http.MethodDelete, "/api/v1/prompts/"+prompt, nil, nil)
	}
	if err == nil {
		err = f.c.settled(ctx, idle, journal.StateIdle)
	}
	if err != nil {
		return err
	}
	for name, title := range map[string]string{"queued": "Wait for a place", "queued_too": "Wait for a place, too"} {
		if _, err := f.made(ctx, name, journal.StateQueued, mission{title: title, prompt: steps("Do it", "echo done")}); err != nil {
			return err
		}
	}
	return nil
}
