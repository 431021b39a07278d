package acp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// errLate says that the agent took too long.
var errLate = errors.New("the agent did not answer in time")

// open brings the agent's own session into the process, unless it is there. It makes no
// facts of what it reads before that is done: whoever comes after a restart reads it
// again. One that says much is read on, so that it fills no disk; whoever comes then has
// another process begin (see halfRead).
func (s *session) open(ctx context.Context) error {
	if p := s.t.State().Process; p != nil && p.Opened {
		return nil
	}
	err := s.opens(ctx)
	s.deaf = err != nil // what it still says is what it told before, of a session that nobody took up
	return err
}

func (s *session) opens(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.a.o.OpenWithin, errLate)
	defer cancel()
	o := opening{s: s}
	for {
		lines, err := s.hear(ctx)
		for i := range lines {
			if done, err := o.line(ctx, &lines[i]); done || err != nil {
				if err == nil {
					err = s.rest(ctx, lines[i+1:])
				}
				return err
			}
		}
		if err == nil {
			err = s.conn.keepUp(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// opening is the way to an open session: initialize, then one of three requests.
type opening struct {
	s      *session
	init   wire.InitializeResult
	how    journal.AgentOpening
	strays string // what isn't ACP

	refusals [][]byte // that are told behind the request that opens the session, by whose number it is known that it was told
}

// refuse answers what the agent asks before a session is open.
func (o *opening) refuse(ctx context.Context, id wire.ID) error {
	if why := untold(o.s.t.Masked(id.String())); why != "" {
		return &refusedError{words: "The agent asked something before a session was open, and can't be answered, since the id of its request " + why + ". Nothing was sent."}
	}
	frame, err := wire.ErrorAnswer(id, wire.CodeMethodNotFound, "nothing can be asked before a session is open")
	if err != nil {
		return err
	}
	if o.s.conn.p.Told() > 1 {
		return o.s.conn.say(ctx, runner.Commit{Frames: [][]byte{frame}})
	}
	o.refusals = append(o.refusals, frame)
	return nil
}

// refusedError is what the agent answered, which its turn fails with.
type refusedError struct {
	words  string
	signIn bool                    // it goes on once somebody has signed the agent in
	forgot *journal.AgentForgotten // it can't go on with its session
}

func (e *refusedError) Error() string { return e.words }

func (o *opening) line(ctx context.Context, line *wire.Line) (done bool, err error) {
	masked := o.s.t.MaskedLine(line.Bytes, shape)
	m, stray := wire.Parse(masked)
	switch {
	case stray != nil: // shown if nothing better comes
		o.strays = tail(o.strays + wire.Excerpt(masked) + "\n")
		o.s.conn.fault.Set(o.strays)
	case m.Kind == wire.KindRequest && untold(m.ID.String()) != "":
		return false, cantBeAnswered(untold(m.ID.String()))
	case m.Kind == wire.KindRequest:
		return false, o.refuse(ctx, m.ID)
	case m.Kind != wire.KindResponse:
		return false, nil // news of a session that is loaded, which the journal has
	case m.ID == wire.NumberID(1):
		return false, o.initialized(ctx, m)
	case m.ID == wire.NumberID(2) && o.how != "":
		return true, o.opened(ctx, line, m)
	}
	return false, nil
}

func (o *opening) initialized(ctx context.Context, m wire.Message) error {
	o.s.a.first.pass()
	if m.Err != nil {
		return &refusedError{words: "The agent could not begin: " + quoteError(m.Err) + ". Nothing was sent."}
	}
	var err error
	if o.init, err = wire.Decode[wire.InitializeResult](m.Result); err != nil {
		return &refusedError{words: "The agent's first answer can't be read: " + journal.Quote(err.Error(), saidBytes) + ". Nothing was sent."}
	}
	if o.init.ProtocolVersion != wire.ProtocolVersion {
		return &refusedError{words: fmt.Sprintf("The agent speaks version %d of ACP; this server speaks %d. Nothing was sent.", o.init.ProtocolVersion, wire.ProtocolVersion)}
	}
	method := o.choose()
	if method == "" {
		return o.forgot(journal.CannotBeAsked, nil, "This agent can't go on with a conversation in a new process, and the process of this one has ended. Nothing was sent. A new conversation can be started here, with a summary from the journal, for what is left to do.")
	}
	if o.s.conn.p.Told() > 1 { // an earlier server has asked
		return nil
	}
	params := wire.SessionParams{Cwd: o.s.t.State().Workspace}
	if method != wire.MethodSessionNew {
		params.SessionID = o.s.t.State().AgentSession
	}
	frame, err := wire.Request(2, method, params)
	if err != nil {
		return err
	}
	return o.s.conn.say(ctx, runner.Commit{Frames: append([][]byte{frame}, o.refusals...)})
}

// choose is how the session comes into the process: never a new one in place of
// one that the agent should know.
func (o *opening) choose() string {
	switch caps := o.init.AgentCapabilities; {
	case o.s.t.State().AgentSession == "":
		o.how = journal.AgentNew
		return wire.MethodSessionNew
	case bool(caps.SessionCapabilities.Resume):
		o.how = journal.AgentResumed
		return wire.MethodSessionResume
	case caps.LoadSession:
		o.how = journal.AgentLoaded
		return wire.MethodSessionLoad
	}
	return ""
}

// Bounds of what an agent says of itself, in bytes.
const (
	mostSessionID = 4096 // it is never cut
	mostName      = 200
)

func (o *opening) opened(ctx context.Context, line *wire.Line, m wire.Message) error {
	if m.Err != nil {
		return o.refused(m.Err)
	}
	body := &journal.AgentOpened{ProcessID: o.s.conn.p.ID(), AgentSessionID: o.s.t.State().AgentSession, How: o.how}
	if r, err := wire.Decode[wire.NewSessionResult](m.Result); err == nil && r.SessionID != "" && o.how != journal.AgentNew && !o.s.own(r.SessionID) {
		return o.another()
	}
	offered, _ := wire.Decode[wire.SessionState](m.Result) // null, or not readable: it offers nothing yet
	if o.how == journal.AgentNew {
		r, err := wire.Decode[wire.NewSessionResult](m.Result)
		if err != nil || r.SessionID == "" {
			return &refusedError{words: "The agent opened a session and didn't say which. Nothing was sent."}
		}
		switch {
		case wire.Unkept(r.SessionID):
			return &refusedError{words: "The agent's id of its conversation " + idUnkept + ", so the agent can't be told which conversation is meant. Nothing was sent."}
		case len(r.SessionID) > mostSessionID:
			return &refusedError{words: fmt.Sprintf("The agent's id of its conversation is longer than %d bytes. Nothing was sent.", mostSessionID)}
		case hidden(r.SessionID) || o.s.t.Masked(r.SessionID) != r.SessionID:
			return &refusedError{words: "The agent's id of its conversation contains the value of a credential, which is hidden, so the agent can't be told which conversation is meant. Nothing was sent. The value stays hidden for as long as this server runs, also if the credential is deleted or replaced. Have the agent make other ids, if its configuration allows that, and continue."}
		}
		body.AgentSessionID = r.SessionID
	}
	if info := o.init.AgentInfo; info != nil {
		body.Name, body.Version = journal.Cut(info.Name, mostName), journal.Cut(info.Version, mostName)
	}
	caps := o.init.AgentCapabilities
	body.Resumes = caps.LoadSession || bool(caps.SessionCapabilities.Resume)
	drafts := append([]journal.Draft{runner.Seen(body)}, o.offered(offersOf(offered))...)
	if err := o.s.conn.commit(ctx, line, runner.Commit{Drafts: drafts}); err != nil {
		return err
	}
	o.remember(ctx, body)
	return nil
}

// offered is the fact of what the agent offers in a session that it has opened.
func (o *opening) offered(list []journal.AgentOption) []journal.Draft {
	if len(list) == 0 {
		return nil
	}
	kept, more := journal.BoundOptions(list)
	return []journal.Draft{runner.Seen(&journal.AgentOptions{ProcessID: o.s.conn.p.ID(), Options: kept, More: more})}
}

// remember keeps what the agent offers in a new session for the next that is made
// of it (see store.SaveAgentOffers). One that can't be kept holds up no turn.
func (o *opening) remember(ctx context.Context, opened *journal.AgentOpened) {
	if opened.How != journal.AgentNew || o.s.t.State().OptionsSeq == 0 {
		return
	}
	if now, err := o.s.options(ctx); err == nil {
		o.s.t.KeepOffers(ctx, strings.TrimSpace(opened.Name+" "+opened.Version), now.now)
	}
}

func (o *opening) refused(e *wire.Error) error {
	switch {
	case e.Code == wire.CodeAuthRequired:
		return &refusedError{words: "The agent needs a sign-in: " + quoteError(e) + "." + waysIn(o.init.AuthMethods) + " Nothing was sent.", signIn: true}
	case o.how == journal.AgentNew:
		return &refusedError{words: "The agent could not open a session: " + quoteError(e) + ". Nothing was sent."}
	case o.how == journal.AgentResumed:
		return o.forgot(journal.AskedToResume, e, "")
	}
	return o.forgot(journal.AskedToLoad, e, "")
}

// forgot fails the turn of an agent that can't go on with its session. Agents answer
// with errors of many kinds then; one that doesn't say that the session isn't there
// may pass.
func (o *opening) forgot(how journal.AgentMemory, e *wire.Error, why string) error {
	if e != nil {
		what := "The agent has no memory of this conversation any more: "
		if e.Code != wire.CodeNotFound {
			what = "The agent could not take up this conversation, and may have forgotten it: "
		}
		why = what + quoteError(e) + ". Nothing was sent, and the journal has all of it. A new conversation can be started here, with a summary from the journal, for what is left to do."
	}
	return &refusedError{words: why, forgot: &journal.AgentForgotten{
		ProcessID: o.s.conn.p.ID(), Reason: why, How: how, MayPass: e != nil && e.Code != wire.CodeNotFound,
	}}
}

// another fails the turn of an agent that answers with another session than the one that
// it was asked to take up: nobody can tell what it knows in that.
func (o *opening) another() error {
	how := journal.AskedToLoad
	if o.how == journal.AgentResumed {
		how = journal.AskedToResume
	}
	why := "The agent took up another conversation than the one that it was asked for. Nothing was sent, and the journal has all of it. A new conversation can be started here, with a summary from the journal, for what is left to do."
	return &refusedError{words: why, forgot: &journal.AgentForgotten{ProcessID: o.s.conn.p.ID(), Reason: why, How: how, MayPass: true}}
}

// words are an agent's error for people.
func words(e *wire.Error) string {
	text := e.Message
	if text == "" {
		text = fmt.Sprintf("error %d", e.Code)
	}
	if len(e.Data) > 0 {
		text += " (" + wire.Excerpt(e.Data) + ")"
	}
	return journal.Cut(text, mostError)
}

// mostError bounds what is kept of an agent's error, in bytes.
const mostError = 1000

// quoteError is an agent's error in a sentence of the server's.
func quoteError(e *wire.Error) string { return journal.Quote(words(e), mostError) }

// mostWays is how many of an agent's ways to sign in are named.
const mostWays = 3

// waysIn says how the agent can be signed in, by its own words.
func waysIn(list []wire.AuthMethod) string {
	var out strings.Builder
	for i, m := range list {
		if i == mostWays {
			fmt.Fprintf(&out, " It names %d ways more.", len(list)-i)
			break
		}
		out.WriteString(" It names the way " + journal.Quote(cmp.Or(m.Name, m.ID), 80))
		if m.Description != "" && m.Description != m.Name {
			out.WriteString(": " + journal.Quote(m.Description, 160))
		}
		out.WriteString(".")
	}
	return out.String()
}
