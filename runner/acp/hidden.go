package acp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/journal"
	"holdfast/journal/policy"
	"holdfast/runner/acp/wire"
)

// An agent chooses ids that it is told again: of its session, its requests and their
// options, its settings. One that contains the value of a credential is masked like all
// that the agent says, and one that isn't text can't be kept (see wire.Kept): neither can
// be told again as it is. It is never told changed: then another thing would be meant, or
// none.

// errCantAnswer says that a request can't be answered: why the process is ended.
var errCantAnswer = errors.New("it asked something that can't be answered")

func hidden(id string) bool { return strings.Contains(id, journal.Hidden) }

// Why an id can't be told.
const (
	idHidden = "contains the value of a credential, which is hidden"
	idUnkept = "has characters that can't be kept as they are"
)

// untold says why an id of the agent's can't be told again; "": it can.
func untold(id string) string {
	switch {
	case hidden(id):
		return idHidden
	case wire.Unkept(id):
		return idUnkept
	}
	return ""
}

// unseen has what can't be told always asked, since a part of it is hidden: a file, or the
// end of a command, which may begin with what begins a secret (see Cleaner.Unended). Rules
// would judge another one.
func unseen(all []policy.Resource) []policy.Resource {
	out := slices.Clone(all)
	for i, r := range out {
		ends := strings.HasSuffix(strings.TrimRight(r.Value, "`'\"…)]}>*_.,;:| \t\r\n"), strings.TrimRight(journal.Hidden, "]"))
		if hidden(r.Value) && (r.Permission != policy.PermissionShell || ends) {
			out[i].AlwaysAsk, out[i].Neutral, out[i].Why = true, false, "a part of it is hidden"
		}
	}
	return out
}

// own reports whether an id in what the agent says is that of the session. A value that
// it contains may have become a secret after the id was learnt.
func (s *session) own(id string) bool {
	known := s.t.State().AgentSession
	return id == known || hidden(id) && id == s.t.Masked(known)
}

// cantAnswer keeps a request that can't be answered. Its process is ended once that is
// in the journal.
func (s *session) cantAnswer(m wire.Message, why string) {
	fault := journal.FaultHiddenID
	if why == idUnkept {
		fault = journal.FaultUnkeptID
	}
	s.fact(&journal.AgentEvent{ProcessID: s.conn.p.ID(), Raw: journal.T(s.whole(m.Raw)), Ends: fault})
	s.cant = why
}

// cantBeAnswered is why a process is ended that asked under an id that can't be told.
func cantBeAnswered(why string) error {
	return fmt.Errorf("%w, since the id of its request %s", errCantAnswer, why)
}

// cantAllow refuses a request that can't be allowed, and tells people why.
func (s *session) cantAllow(m wire.Message, c *toolCall, options []wire.PermissionOption, why string) error {
	if !s.ending {
		frame, err := reply(askedOf{ID: m.ID, Options: options}, wire.RejectOnce)
		if err != nil {
			return err
		}
		s.frames = append(s.frames, frame)
	}
	s.settleAsked(c.id, journal.CallIsRefused, cantBeAllowed+why)
	return nil
}

const cantBeAllowed = "it can't be allowed: "

// tellable leaves out the options that can't be chosen, and says why the agent could
// not be told that it may, once; "": it could.
func tellable(options []wire.PermissionOption) (out []wire.PermissionOption, why string) {
	out = slices.DeleteFunc(slices.Clone(options), func(o wire.PermissionOption) bool { return cantTell(o, options) != "" })
	if i := slices.IndexFunc(options, func(o wire.PermissionOption) bool { return o.Kind == wire.AllowOnce }); i < 0 {
		return out, "the agent offers no answer that allows it once, and what it would remember is never chosen"
	} else if _, ids, names := ofKind(options, wire.AllowOnce); ids > 1 {
		return out, "the agent offers several answers that allow it once, which may mean different things, and none of them is chosen unseen: " + names
	} else if one, _, _ := ofKind(out, wire.AllowOnce); one == nil {
		return out, cantTell(options[i], options)
	}
	return out, ""
}

// ofKind is the one option of a kind, nil if there is none or there are several, with
// how many there are and what they are called. Those with one id are one.
func ofKind(options []wire.PermissionOption, kind string) (one *wire.PermissionOption, ids int, names string) {
	seen := map[string]bool{}
	var called []string
	for i, o := range options {
		if o.Kind != kind {
			continue
		}
		if len(called) < mostNamed {
			called = append(called, journal.Quote(o.Name, 80))
		}
		seen[o.OptionID] = true
		one = &options[i]
	}
	if len(seen) > 1 {
		one = nil
	}
	return one, len(seen), strings.Join(called, ", ")
}

// plainNames are what agents call the answers that mean no more than that they allow, or
// reject, once.
var plainNames = []string{"allow", "allow once", "yes", "approve", "approve once", "accept", "reject", "reject once", "no", "deny", "deny once", "decline", "cancel"}

// calledBy is what an agent calls the one option of a kind, "" if that says no more than
// the button by which a person chooses it.
func calledBy(options []wire.PermissionOption, kind string) string {
	o, _, _ := ofKind(options, kind)
	if o == nil || slices.Contains(plainNames, strings.ToLower(strings.TrimSpace(o.Name))) {
		return ""
	}
	return journal.Cut(strings.TrimSpace(o.Name), 200)
}

// cantTell says why an option can't be chosen; "": it can.
func cantTell(o wire.PermissionOption, all []wire.PermissionOption) string {
	switch why := untold(o.OptionID); {
	case why == idHidden:
		return "the agent's id for that answer " + why + ". The value stays hidden for as long as this server runs, also if the credential is deleted or replaced; have the agent use other ids, if its configuration allows that"
	case why != "":
		return "the agent's id for that answer " + why
	case o.OptionID == "":
		return "the agent gives no id for that answer"
	case slices.ContainsFunc(all, func(p wire.PermissionOption) bool { return p.OptionID == o.OptionID && p.Kind != o.Kind }):
		return "the agent has the same id for that answer and for another"
	}
	return ""
}

const isTwin = "the agent asks two things at once under one id, so the answer to one could be taken for the other's"

// giveUpTwin refuses what was asked under the id of a request and has no answer yet;
// false: there is no such.
func (s *session) giveUpTwin(id wire.ID) bool {
	a, ok := s.dropAsk(id)
	if !ok {
		return false
	}
	if frame, err := wire.Result(id, wire.Cancelled()); err == nil && !s.ending {
		s.frames = append(s.frames, frame)
	}
	s.settleAsked(a.CallID, journal.CallIsRefused, cantBeAllowed+isTwin)
	return true
}
