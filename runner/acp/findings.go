package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner/acp/wire"
)

// Health is how something about an agent came out.
type Health string

// The healths. Only Wrong keeps the agent from working.
const (
	Healthy Health = "ok"
	Warning Health = "warning"
	Wrong   Health = "wrong"
)

// Finding is one thing that is so of an agent, for people. It may hold the agent's own
// words: they are bounded and hold no secret, but characters that act are still in them.
type Finding struct {
	Subject string // what it is about: start, session, stop, …
	Health  Health
	Found   string
	Do      string // what can be done; "" if nothing needs to be
}

// Findings say what a probe has found, and what follows from it: what may be promised
// of the agent, and what not. err is that of the probe.
func (a *Agent) Findings(p Probe, err error, extra ...string) []Finding {
	f := &findings{a: a, p: &p, clean: a.cleaner(extra)}
	if p.Program == "" && errors.Is(err, fs.ErrPermission) {
		f.wrong("program", sentence(err), DoExecutable+", or name another with --agent "+a.o.Name+"=PROGRAM and start the server again")
		return f.list
	}
	if p.Program == "" {
		f.wrong("program", sentence(err), "install it and have its folder on PATH, or name its file with --agent "+a.o.Name+"=PROGRAM, then start the server again if you changed either")
		return f.list
	}
	if a.InWorkspace() {
		f.warn("program", FoundInWorkspace(p.Program), DoInWorkspace)
	} else {
		f.add("program", excerpt(p.Program))
	}
	if err != nil {
		f.failed(err)
		return f.list
	}
	f.start()
	f.session()
	f.signIn()
	if p.Refused == nil {
		f.offers()
	}
	f.talks()
	f.stops()
	f.survives()
	f.leaves()
	return f.list
}

// findings are being collected.
type findings struct {
	a     *Agent
	p     *Probe
	clean *journal.Cleaner
	list  []Finding
}

func (f *findings) put(subject string, h Health, found, do string) {
	f.list = append(f.list, Finding{subject, h, hideKeys(f.clean.Text(found)), hideKeys(f.clean.Text(do))})
}

func (f *findings) add(subject, found string)       { f.put(subject, Healthy, found, "") }
func (f *findings) warn(subject, found, do string)  { f.put(subject, Warning, found, do) }
func (f *findings) wrong(subject, found, do string) { f.put(subject, Wrong, found, do) }

func sentence(err error) string {
	if err == nil {
		return "it was not started"
	}
	return journal.Cut(strings.Join(strings.Fields(err.Error()), " "), 2*saidBytes+lastWords)
}

func round(d time.Duration) string { return d.Round(time.Millisecond).String() }

// failed says what stood in the way.
func (f *findings) failed(err error) {
	subject, do := "start", "try its command by hand: "+f.a.CommandLine()
	switch v := f.p.Init.ProtocolVersion; {
	case v == wire.ProtocolVersion:
		f.start()
		subject = "session"
	case v != 0:
		do = fmt.Sprintf("install a version of it that speaks version %d of ACP, or a newer Holdfast", wire.ProtocolVersion)
	}
	f.wrong(subject, sentence(err), do)
	f.left()
}

func (f *findings) start() {
	who := "it doesn't say who it is"
	if i := f.p.Init.AgentInfo; i != nil {
		who = journal.Quote(i.Name+" "+i.Version, saidBytes)
	}
	f.add("start", fmt.Sprintf("%s, ACP %d, begun in %s", who, f.p.Init.ProtocolVersion, round(f.p.InitTook)))
	if f.p.Rubbish != "" {
		f.warn("output", "it writes to its standard output what isn't ACP, which is passed over: "+journal.Quote(f.p.Rubbish, saidBytes), "")
	}
}

func (f *findings) session() {
	switch e := f.p.Refused; {
	case e == nil:
		f.add("session", "opens a session in "+round(f.p.OpenTook)+"; no model was asked")
	case e.Code == wire.CodeAuthRequired:
		f.wrong("session", "opens no session before it is signed in: "+journal.Quote(words(e), saidBytes), "sign it in as the user that the server runs as, or give it its key: stored on Settings, Credentials, or with --agent-env NAME; then look again. Sessions that wait for it go on with Continue")
	default:
		f.wrong("session", "opens no session: "+journal.Quote(words(e), saidBytes), "see what it needs by its own command: "+f.a.CommandLine())
	}
}

// mostNamed is how many of what an agent offers are named.
const mostNamed = 8

// listed names some of many.
func listed(names []string) string {
	if more := len(names) - mostNamed; more > 0 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

func named(name, id string) string {
	if name == "" {
		name = id
	}
	return journal.Quote(name, 80)
}

func (f *findings) signIn() {
	var names []string
	for i, m := range f.p.Init.AuthMethods {
		if i >= mostNamed {
			names = append(names, named(m.ID, ""))
			continue
		}
		name := named(m.Name, m.ID)
		if m.Description != "" && m.Description != m.Name {
			name += " (" + journal.Quote(m.Description, 160) + ")"
		}
		names = append(names, name)
	}
	found := "it names no way to sign in"
	if len(names) > 0 {
		found = "it can be signed in by its own command line: " + listed(names)
	}
	if f.p.Refused == nil {
		found += ". It asked for none now; whether its key or account works shows with the first message"
	}
	f.add("sign-in", found)
}

// offers are the models, modes and options of the session that was opened.
func (f *findings) offers() {
	s := f.p.Session
	if m := s.Models; m != nil && !optional(s, "model") {
		var names []string
		now := m.CurrentModelID
		for _, one := range m.AvailableModels {
			names = append(names, named(one.Name, one.ModelID))
			if one.ModelID == m.CurrentModelID {
				now = cmp.Or(one.Name, one.ModelID)
			}
		}
		f.offer("models", now, names)
	}
	if m := s.Modes; m != nil && !optional(s, "mode") {
		var names []string
		now := m.CurrentModeID
		for _, one := range m.AvailableModes {
			names = append(names, named(one.Name, one.ID))
			if one.ID == m.CurrentModeID {
				now = cmp.Or(one.Name, one.ID)
			}
		}
		f.offer("modes", now, names)
	}
	for i, o := range s.ConfigOptions {
		if i >= mostNamed {
			f.add("options", fmt.Sprintf("and %d options more", len(s.ConfigOptions)-i))
			break
		}
		f.option(o)
	}
}

// optional reports whether an option is what an older member of the session says, too.
func optional(s wire.SessionState, category string) bool {
	return slices.ContainsFunc(s.ConfigOptions, func(o wire.ConfigOption) bool { return o.Category == category })
}

func (f *findings) option(o wire.ConfigOption) {
	now := string(o.CurrentValue)
	_ = json.Unmarshal(o.CurrentValue, &now) // of a boolean it stays true or false
	var names []string
	for _, c := range o.Options {
		names = append(names, named(c.Name, c.Value))
		if c.Value == now && c.Name != "" {
			now = c.Name
		}
	}
	f.offer("option "+named(o.Name, o.ID), now, names)
}

func (f *findings) offer(what, now string, names []string) {
	found := "now nothing"
	if now != "" {
		found = "now " + named(now, "")
	}
	if len(names) > 0 {
		found += "; it offers " + listed(names)
	}
	f.add(what, found)
}

// talks says what goes to and fro in a turn.
func (f *findings) talks() {
	can := f.p.Init.AgentCapabilities
	kinds := []string{"text"}
	for _, k := range []struct {
		can  bool
		name string
	}{{can.PromptCapabilities.Image, "images"}, {can.PromptCapabilities.Audio, "audio"}, {can.PromptCapabilities.EmbeddedContext, "embedded files"}} {
		if k.can {
			kinds = append(kinds, k.name)
		}
	}
	f.add("messages", "it takes "+strings.Join(kinds, ", ")+"; Holdfast sends it text. A message that comes while it works reaches it after the turn, or once you stop the turn: ACP takes none in between")
	over := []string{"stdio"}
	if can.MCPCapabilities.HTTP {
		over = append(over, "http")
	}
	if can.MCPCapabilities.SSE {
		over = append(over, "sse")
	}
	f.add("MCP servers", "it takes some over "+strings.Join(over, ", ")+"; Holdfast gives it none, so it has those of its own settings")
	f.add("permissions", "what it asks for is judged by the session's rules, then by a person; its own \"always\" is never chosen. What it doesn't ask for, it does: its own settings say what that is, and Holdfast is no sandbox around it")
}

func (f *findings) stops() {
	found := fmt.Sprintf("it is told to stop and has %s; then its process and all that this has started are ended, and what it did then is unknown", f.a.o.CancelWithin)
	switch t := f.p.Idle; {
	case t.Method == "":
		f.add("stop", found)
	case t.ok():
		f.add("stop", found+". Tried: told to stop while nothing ran, it still answers. A stop in the middle of a turn can't be tried without a model")
	case t.Method == methodNone && errors.Is(t.Err, errLate):
		f.add("stop", found+". Tried: told to stop while nothing ran, it did not end; whether it still answers can't be told, since it offers nothing harmless to ask for")
	default:
		f.warn("stop", found+". Tried: told to stop while nothing ran, it did not answer any more: "+sentence(t.Err), "expect that a stop ends its process, and what it was doing is unknown then")
	}
}

// ok reports whether there was an answer, if only that it can't do that.
func (t Try) ok() bool {
	var answered *wire.Error
	return t.Err == nil || errors.As(t.Err, &answered)
}

// survives says what outlives what.
func (f *findings) survives() {
	f.add("restart of the server", "interrupts nothing: its process goes on, and so do its turn and what it waits for")
	f.add("death of its process", "ends its turn: what it was doing is unknown, is said to be so, and is never sent again by itself. What it had said is kept")
	how := map[string]string{wire.MethodSessionResume: "goes on with a conversation in another process", wire.MethodSessionLoad: "goes on with a conversation in another process, after it has told all of it again, which isn't recorded twice"}
	t := f.p.GoOn
	var answered *wire.Error
	switch {
	case f.a.resuming(f.p) == "":
		f.warn("pause", "can't go on with a conversation once its process has ended", "raise --agent-idle, so that it ends later; what was said is kept, and a new session can take it up")
	case t.Method == "":
		f.add("pause", "says that it "+how[f.a.resuming(f.p)]+"; not tried, since it opened no session")
	case t.Err == nil:
		f.add("pause", how[t.Method]+". Tried with one in which nothing was said, in "+round(t.Took))
	case errors.As(t.Err, &answered):
		f.add("pause", "says that it "+how[t.Method]+". Tried: it didn't remember a session in which nothing was said, as some agents don't ("+journal.Quote(words(answered), saidBytes)+"). With one that has messages it can't be tried without a model")
	default:
		f.warn("pause", "says that it "+how[t.Method]+". Tried: it did not: "+sentence(t.Err), "look again; if it stays so, raise --agent-idle, so that its process ends later")
	}
}

func (f *findings) leaves() {
	switch {
	case f.p.Leaves:
		f.add("end", "ends by itself when it is told nothing more, in "+round(f.p.LeftIn))
	case !f.p.Gone:
		f.add("end", fmt.Sprintf("doesn't end by itself within %s when it is told nothing more: it is ended", f.a.o.ExitWithin))
	}
	f.left()
	var answered *wire.Error
	switch {
	case f.p.Refused != nil:
	case errors.As(f.p.GoOn.Err, &answered):
		f.add("this look", "opened one session, which the agent didn't keep")
	case f.p.Delete.Method != "" && f.p.Delete.Err == nil:
		f.add("this look", "opened one session, and had the agent delete it again")
	default:
		f.add("this look", "opened one session, which may stay in the agent's own list, empty")
	}
}

// left says what still runs although it was ended.
func (f *findings) left() {
	if len(f.p.Left) > 0 {
		f.wrong("end", fmt.Sprintf("some of its processes could not be ended: %v", f.p.Left), "end them by hand")
	}
}
