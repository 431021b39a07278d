package acp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp/wire"
)

// toolCall is what the agent has told of one tool call.
type toolCall struct {
	id     string    // of the call in the journal
	n      int       // of the calls under one of the agent's ids, from 1
	before *toolCall // the one before it under that id that was open then: see under
	told   told
	wrote  told   // as the journal has it
	sum    string // of wrote
	shown  string // the text of its output that is in the journal, as far as it was heard here
	raw    bool   // shown is the tool's own result, in a form of its own
	rests  string // the end of it that may be the start of a secret, and waits for its rest
	bytes  int64  // of its output so far
	kept   int64  // of them in the journal
	lost   int64  // of them in its middle, which the journal counts
	tail   string // the last of them, which aren't: see add
	asked  bool   // it was asked for, as far as was heard here
	runs   bool   // it was dispatched
	begins bool   // its agent says that it runs, whatever was decided
	ended  bool
	after  afterwards // what was told of it since
	said   bool       // that it has ended is the agent's own word
	reads  bool       // it is of class read

	unread bool // what it was told to be can't be read any more: nothing that is told now takes its place
}

// effect is the class of a call: an effect, unless all that was told of it is consistent
// with its agent's word that it only looks at something (CAL-2).
func effect(t told) journal.Effect {
	if t.onlyReads() {
		return journal.EffectRead
	}
	return journal.EffectEffect
}

// mostID is how many bytes of an agent's id of a call stand in its key; a longer one is
// named by its digest, as nobody needs to read it.
const mostID = 200

// key names the nth call of an attempt under one id of the agent's. Some count their
// calls anew in each answer of their model, so an id is unique while its call is open
// at most.
func (s *session) key(toolCallID string, n int) string {
	name := toolCallID
	if len(name) > mostID || strings.Contains(name, "#") || s.t.Masked(name) != name { // a number is told unmasked
		name = "#" + journal.Hash(toolCallID)
	}
	if n > 1 {
		name += fmt.Sprintf("#%d", n)
	}
	return s.t.Attempt() + "/" + name
}

// ends reports whether an update says that its call has ended.
func ends(u *wire.ToolCall) bool {
	return u.Status != nil && (*u.Status == "completed" || *u.Status == "failed")
}

// another reports whether an update, with which the call would be now, is about another
// call under the id of one that has ended. What the agent says after its own word that the
// first has ended is, unless that may be a late word on it. Of one that was refused here
// agents have more to say: how it has failed, and often once more what it was.
func (c *toolCall) another(u *wire.ToolCall, now told) bool {
	if !c.ended {
		return false
	}
	opens := u.Kind == wire.NewToolCall
	begins := u.Status != nil && (*u.Status == "pending" || *u.Status == "in_progress")
	switch {
	case opens && c.told.nothing(): // news of it came first: that is what it was
		return false
	case c.said && opens:
		return true
	case c.said && ends(u):
		return !same(told{Input: c.told.Input}, told{Input: now.Input})
	case c.said && begins, opens && (!ends(u) || *u.Status == "completed"):
		was := c.told
		was.Paths, was.Diffs, now.Paths, now.Diffs = nil, nil, nil, nil
		was.Text, now.Text = "", ""
		return !same(was, now)
	}
	return false
}

// which finds the call that an update is about, or another under the same id, and what that
// is with it.
func (s *session) which(ctx context.Context, u *wire.ToolCall, asks bool) (*toolCall, told, error) {
	newest, err := s.find(ctx, u.ToolCallID)
	switch {
	case err != nil:
		return nil, told{}, err
	case asks:
		return s.askedFor(ctx, newest, u)
	}
	c := s.meant(newest, u)
	now := c.told.with(u)
	if c.another(u, now) {
		c, now = s.nextUnder(newest, u.ToolCallID), told{}.with(u)
	}
	if !s.runsWith(c, u) {
		s.shown(c, u, &now, false)
	}
	return c, now, nil
}

// known finds the call of an update, and proposes it if it is new. What the update says of
// it is taken over.
func (s *session) known(ctx context.Context, u *wire.ToolCall, asks bool) (*toolCall, error) {
	c, now, err := s.which(ctx, u, asks)
	if err != nil {
		return nil, err
	}
	silent := !tells(u) && same(now, c.told)
	c.told = now
	if c.id != "" && silent && (!c.unnamed() || !s.names(c, u)) { // what was told of it may be long, and isn't gone over for each word on how it goes
		return c, nil
	}
	if c.unread && c.id != "" {
		return c, nil
	}
	input, err := journal.Encode(c.told)
	if err != nil {
		return nil, err
	}
	sum := journal.Hash(input)
	if c.id != "" && len(input) > journal.MaxField && c.unnamed() && !asks && !s.names(c, u) {
		return c, nil
	}
	switch {
	case c.id == "":
		s.complete()
		c.id = runner.NewID("call")
		s.ours[c.id] = c
		attempt := s.t.Attempt()
		s.proposed++
		s.fact(&journal.CallProposed{
			CallID: c.id, TurnID: s.t.ID(), Key: s.key(u.ToolCallID, c.n), Tool: toolName(c.told), Input: input, InputSHA256: sum,
			Effect: effect(c.told), AttemptID: &attempt,
		})
		c.reads = effect(c.told) == journal.EffectRead
	case sum != c.sum && !c.ended:
		d := &journal.CallDescribed{CallID: c.id, Input: input, InputSHA256: sum}
		differs := false
		if !asks || s.letRun(c) { // else what is asked is what the call is
			if d.Late, differs, err = s.late(ctx, c); err != nil {
				return nil, err
			}
			if d.Late == journal.LateAsked && !differs && effect(c.told) == effect(c.wrote) { // who reads what is asked isn't asked anew
				return c, nil
			}
		}
		d.Effect = s.reclass(c, d.Late)
		if differs {
			s.fact((*journal.CallContradicted)(d))
		} else {
			s.fact(d)
		}
	}
	c.sum, c.wrote = sum, c.told
	return c, nil
}

// reclass gives the class of a call that is described anew, if that is another: a stricter
// one, or read, of one of which nothing was known yet and that hasn't begun.
func (s *session) reclass(c *toolCall, late journal.Late) journal.Effect {
	is := effect(c.told)
	begun := c.runs || late != ""
	if was := s.t.CallByID(c.id); was != nil {
		begun = begun || was.State != journal.CallIsProposed
	}
	reads := is == journal.EffectRead
	if reads == c.reads || reads && (begun || !c.wrote.blank()) {
		return ""
	}
	c.reads = reads
	return is
}

// unnamed reports whether the journal has all that was told of a call but what it is called.
func (c *toolCall) unnamed() bool {
	named := c.wrote
	named.Title, named.Name = c.told.Title, c.told.Name
	return (c.wrote.Title != c.told.Title || c.wrote.Name != c.told.Name) && same(named, c.told)
}

// names reports whether an update has a call of a long input be called otherwise in the
// journal, too: its input is written with it, so that waits until it begins, or ends. While
// a person reads what is asked nothing waits.
func (s *session) names(c *toolCall, u *wire.ToolCall) bool {
	begins := u.Status != nil && *u.Status == "in_progress" && !c.runs
	return begins || ends(u) || s.asking || s.waits(c.id)
}

// recall takes over what the journal has of a call of before a restart.
func (s *session) recall(ctx context.Context, c *toolCall, was *journal.Call) error {
	text, total, err := s.t.Output(ctx, was.ID)
	if err != nil {
		return err
	}
	if was, err = s.t.WholeCall(ctx, was.ID); err != nil {
		return err
	}
	c.bytes, c.kept, c.lost = total, total-was.DroppedBytes, was.DroppedBytes
	if c.shown = text; int64(len(text)) < total { // too long to compare: what comes is told anew
		c.shown = text + "…"
	}
	c.id, c.sum, c.reads = was.ID, was.InputSHA256, was.Effect == journal.EffectRead
	c.runs, c.ended = was.N > 0 && was.State != journal.CallIsProposed, !was.Open() || s.endedHere(was.ID)
	s.ours[was.ID] = c
	c.said = was.State == journal.CallSucceeded || was.State == journal.CallFailed
	now := was.Input
	if was.Later != nil {
		now, c.sum = was.Later, journal.Hash([]byte(was.Later))
	}
	if c.unread = !journal.ReadInput(now, &c.told); c.unread {
		c.told = told{}
	}
	c.wrote = c.told
	return nil
}

func toolName(t told) string {
	if t.Kind == "" {
		return "other"
	}
	return journal.Cut(t.Kind, 60)
}

// nothing reports that it was never said what the call is.
func (t told) nothing() bool { return same(t, told{}) }

// tool makes facts of news about a tool call.
func (s *session) tool(ctx context.Context, u wire.ToolCall) error {
	if s.t.Attempt() == "" {
		s.outside(journal.OutsideTurn, "", u, u.Raw)
		return nil
	}
	if u.Misread() {
		s.opaque(u.Raw)
	}
	c, err := s.known(ctx, &u, false)
	if err != nil {
		return err
	}
	status := ""
	if u.Status != nil {
		status = *u.Status
	}
	if c.ended {
		c.said = c.said || ends(&u)
		s.saidAfter(c, &u, status)
	} else {
		s.goes(c, &u, status)
	}
	if ends(&u) { // one word for all that it has under that id
		for b := s.tools[u.ToolCallID]; b != nil; b = b.before {
			if !s.isOver(b) {
				s.goes(b, &wire.ToolCall{Status: u.Status}, status)
			}
		}
	}
	return nil
}

// goes takes how a call goes, by its agent's word.
func (s *session) goes(c *toolCall, u *wire.ToolCall, status string) {
	ends := ends(u)
	if status == "in_progress" && !s.asking {
		c.begins = true
	}
	switch waits := s.waits(c.id); {
	case c.runs || s.asking:
	case waits && (status == "completed" || ends && c.begins): // it didn't wait for the answer
		s.giveUpRequests(c.id, unheeded)
		s.dispatch(c, journal.AllowedBy{Type: journal.AllowedByAgent, Text: unheeded}, time.Time{})
	case !waits && status == "in_progress":
		s.dispatch(c, journal.AllowedBy{Type: journal.AllowedByAgent, Text: "the agent asked nobody"}, s.line.Heard)
	case !waits && ends && s.unasked(c.id), !waits && status == "completed":
		s.dispatch(c, journal.Unseen(), time.Time{})
	}
	if c.runs {
		s.output(c, c.shows(u, ends))
		if s.waits(c.id) {
			s.showsHeld(c)
		}
	}
	if ends {
		s.settle(c, status)
	}
}

// shown takes what a call that doesn't run shows. Beside something else that says what the
// call is it is a remark: while somebody is asked, what is asked stays what it is.
func (s *session) shown(c *toolCall, u *wire.ToolCall, now *told, asks bool) {
	shows := s.t.Unended(text(u.Content))
	switch {
	case shows == "" || shows == now.Text:
	case !asks && s.waits(c.id) && (len(now.Input) > 0 || len(now.Diffs) > 0):
		s.opaque(u.Raw)
	default:
		now.Text = shows
	}
}

// runsWith reports whether a call runs by what an update says of it, or did before: then
// what it shows is its output.
func (s *session) runsWith(c *toolCall, u *wire.ToolCall) bool {
	completed := u.Status != nil && *u.Status == "completed"
	switch {
	case c.runs || c.ended || s.asking:
		return c.runs || c.ended
	case s.waits(c.id):
		return completed
	case completed || u.Status != nil && *u.Status == "in_progress":
		return true
	}
	return ends(u) && s.unasked(c.id)
}

// unheeded is why a request is given up, and who let the call run.
const unheeded = "the agent didn't wait for the answer"

// giveUpRequests cancels what people are asked about a call, once: where the turn is
// stopped because of that, whatever the agent makes of it.
func (s *session) giveUpRequests(callID, why string) {
	why = cmp.Or(s.cancels, why)
	for _, r := range s.t.Requests(callID) {
		if !s.given[r] {
			s.given[r] = true
			s.drafts = append(s.drafts, runner.Seen(&journal.PermissionCancelled{ID: r, Reason: why}))
		}
	}
}

// waits reports whether somebody is asked about a call, or it is about to be asked.
func (s *session) waits(callID string) bool {
	if len(s.t.Requests(callID)) > 0 {
		return true
	}
	return s.conn.p.AsksFor(callID) || slices.ContainsFunc(s.asks, func(a runner.Ask) bool { return a.CallID == callID })
}

// unasked reports that the agent has asked nobody for a call, and hasn't said that it
// runs: it may have run all the same.
func (s *session) unasked(callID string) bool {
	if c := s.ours[callID]; c != nil && c.asked {
		return false
	}
	was := s.t.CallByID(callID)
	return (was == nil || was.Unasked()) && !s.waits(callID)
}

// dispatch has a call run. heard is when its agent said so, of one that it began by
// itself: that line may have been held.
func (s *session) dispatch(c *toolCall, by journal.AllowedBy, heard time.Time) {
	n := 1
	if was := s.t.CallByID(c.id); was != nil {
		n = was.N + 1
	}
	c.runs = true
	s.fact(&journal.CallDispatched{CallID: c.id, N: n, AllowedBy: by, Heard: heard})
}

// settle takes the agent's word on how a call ended. One that was cancelled is
// cancelled, whatever the agent calls it; its word stands beside.
func (s *session) settle(c *toolCall, status string) {
	state, reason := journal.CallSucceeded, ""
	if status == "failed" {
		state = journal.CallFailed
	}
	switch {
	case s.cancels != "":
		state, reason = journal.CallCancelled, "stopped; the agent says "+status
	case !c.runs: // it asked, and was refused
		state, reason = journal.CallCancelled, "it did not run"
	}
	c.ended, c.said = true, true
	s.addTail(c)
	s.giveUpRequests(c.id, unheeded)
	s.fact(&journal.CallSettled{CallID: c.id, State: state, Reason: reason, OutputBytes: c.bytes, DroppedBytes: c.lost})
}

// endCalls concludes what the agent says nothing more of, when its turn has ended.
func (s *session) endCalls(cancelled bool) {
	s.addTails()
	calls := s.t.Calls(s.t.Attempt())
	output := s.amounts(calls)
	for _, c := range calls {
		if c.Open() && !s.endedHere(c.ID) {
			s.endCall(c.ID, s.mayHaveRun(&c) && !cancelled, c.DispatchedAt, output[c.ID])
		}
	}
	for _, c := range s.heardNow() {
		ran := !c.reads && (c.runs || !c.asked)
		if ran && !c.runs {
			s.dispatch(c, journal.Unseen(), time.Time{})
		}
		s.endCall(c.id, ran && !cancelled, 0, amount{c.bytes, c.lost})
		c.ended = true
	}
}

// endCall concludes a call whose turn has ended: unknown, or cancelled.
func (s *session) endCall(id string, unknown bool, since int64, output amount) {
	const why = "the agent's turn has ended"
	if unknown {
		s.giveUpRequests(id, why)
		s.drafts = append(s.drafts, runner.Seen(&journal.CallUnknown{CallID: id, Since: since, Evidence: []journal.Evidence{{Type: journal.EvidenceAgent, Text: "The agent ended its turn without saying how this ended."}}}))
		return
	}
	s.giveUpRequests(id, why)
	s.drafts = append(s.drafts, runner.Seen(&journal.CallSettled{CallID: id, State: journal.CallCancelled, Reason: why, OutputBytes: output.bytes, DroppedBytes: output.dropped}))
}

// heardNow gives the open calls of which the journal knows nothing yet, in the order of
// their ids: they were heard of in the lines that are read just now.
func (s *session) heardNow() []*toolCall {
	var out []*toolCall
	for _, c := range s.ours {
		if !c.ended && s.t.CallByID(c.id) == nil {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *toolCall) int { return strings.Compare(a.id, b.id) })
	return out
}

// mayHaveRun reports whether a call that is concluded may have had an effect. Of one that
// nobody let run it notes that: it was never asked for, or its agent said that it runs
// before the answer.
func (s *session) mayHaveRun(c *journal.Call) bool {
	by := journal.Unseen()
	switch {
	case c.Effect == journal.EffectRead:
		return false
	case s.began(c.ID):
		return true
	case s.ours[c.ID] != nil && s.ours[c.ID].begins:
		by = journal.AllowedBy{Type: journal.AllowedByAgent, Text: unheeded}
	case !s.unasked(c.ID):
		return false
	}
	s.giveUpRequests(c.ID, unheeded)
	s.drafts = append(s.drafts, runner.Seen(&journal.CallDispatched{CallID: c.ID, N: c.N + 1, AllowedBy: by}))
	return true
}

// began reports whether a call was let run, whatever its agent has asked of it since: it
// may have run, and is never said not to have. One that its agent alone said to run, and
// asks for, has not.
func (s *session) began(callID string) bool {
	c, was := s.ours[callID], s.t.CallByID(callID)
	if was != nil && was.LetItself() && (c == nil || c.bytes == 0) && (was.State == journal.CallIsWaiting || s.waits(callID)) {
		return false
	}
	return c != nil && c.runs || was != nil && was.Began()
}

func (s *session) endedHere(callID string) bool {
	c := s.ours[callID]
	return c != nil && c.ended
}
