package journal

import "testing"

// What the end of a turn holds that was, or is to be, stopped for a prompt: the last
// word of a person counts.
//
// proves PRO-5 COO-4
func TestState_StoppedForAPrompt(t *testing.T) {
	t.Parallel()
	sends := func(id string) []Body {
		return []Body{&PromptAdmitted{PromptID: id, Delivery: Steer}, &InterruptRequested{By: "usr_1", Mode: InterruptNow, PromptID: id}}
	}
	gone := func(id string) Body { return &PromptWithdrawn{PromptID: id} }
	boundary, rejected := &InterruptRequested{By: "usr_1", Mode: InterruptBoundary}, &InterruptRequested{By: "usr_1", Mode: InterruptNow, Reason: ReasonRejected}
	queued := &PromptAdmitted{PromptID: "inp_9", Delivery: Queue}
	end := ended(Stopped)
	forgot := &AgentForgotten{Reason: "gone"}
	for name, c := range map[string]struct {
		story []any
		held  bool
		sends bool
	}{
		"sent":                                {story: []any{sends("inp_2"), end}, sends: true},
		"sent, over a queue":                  {story: []any{queued, sends("inp_2"), end}, sends: true},
		"sent twice":                          {story: []any{sends("inp_2"), sends("inp_3"), end}, sends: true},
		"sent twice, one withdrawn":           {story: []any{sends("inp_2"), sends("inp_3"), gone("inp_2"), end}, sends: true},
		"withdrawn before the end":            {story: []any{queued, sends("inp_2"), gone("inp_2"), end}, held: true},
		"withdrawn after the end":             {story: []any{queued, sends("inp_2"), end, gone("inp_2")}, held: true},
		"withdrawn, but another came after":   {story: []any{sends("inp_2"), end, queued, gone("inp_2")}, sends: true},
		"stopped, then sent":                  {story: []any{ask, sends("inp_2"), end}, sends: true},
		"stopped at a boundary, then sent":    {story: []any{boundary, sends("inp_2"), end}, sends: true},
		"sent, then stopped":                  {story: []any{sends("inp_2"), ask, end}, held: true},
		"sent, stopped, and sent again":       {story: []any{sends("inp_2"), ask, sends("inp_3"), end}, sends: true},
		"sent, then rejected":                 {story: []any{sends("inp_2"), rejected, end}, sends: true},
		"only stopped, with a steer":          {story: []any{&PromptAdmitted{PromptID: "inp_2", Delivery: Steer}, ask, end}, held: true},
		"sent, and the server stops":          {story: []any{sends("inp_2"), ended(Interrupted)}, sends: true},
		"sent, and the turn fails":            {story: []any{sends("inp_2"), ended(Failed)}, sends: true},
		"sent, and the agent has forgotten":   {story: []any{sends("inp_2"), forgot, ended(Failed)}, held: true, sends: true},
		"sent, unknown, and it is to stay":    {story: []any{sent, sends("inp_2"), unknown, end, resolved(ThenStay)}, held: true},
		"sent, unknown, and it is to go on":   {story: []any{sent, sends("inp_2"), unknown, end, resolved(ThenContinue)}, sends: true},
		"unknown, stays while it is stopping": {story: []any{sent, unknown, sends("inp_2"), resolved(ThenStay), end}, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bodies := []Body{created, admitted, started, promoted, proposed}
			for _, b := range c.story {
				switch b := b.(type) {
				case []Body:
					bodies = append(bodies, b...)
				case Body:
					bodies = append(bodies, b)
				}
			}
			s := story(t, bodies...)
			if s.Held != c.held || s.Sends() != c.sends {
				t.Errorf("held %v, sends %v; want %v, %v", s.Held, s.Sends(), c.held, c.sends)
			}
			if want := !c.held; s.HasWork(1<<40) != want {
				t.Errorf("work %v, want %v", !want, want)
			}
		})
	}
	if s := story(t, created, admitted, started, promoted, rejected, &InterruptRequested{By: "usr_1", Mode: InterruptNow, PromptID: "inp_2"}); s.Stopped().Reason != ReasonRejected {
		t.Errorf("the turn is stopped because it was %s; a message that is sent doesn't change that", s.Stopped().Reason)
	}
}
