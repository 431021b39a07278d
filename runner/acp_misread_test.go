package runner_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What an agent tells in another form than it should, or as a person's who never said it, is
// in the journal as it came; its own prompt, told back to us, isn't once more.
//
// proves JRN-7
func TestACP_KeepsWhatItCantRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `hear
say '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Do "}}'
say '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"it well"}}'
say '{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"WORDS-OF-NOBODY"}}'
say '{"sessionUpdate":"user_message_chunk","content":{"type":"image","data":"aa","mimeType":"image/odd"}}'
say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":["A-LIST"],"kind":"read","status":"completed"}'
say '{"sessionUpdate":"tool_call","toolCallId":"t2","title":null,"kind":"read","content":[],"status":"completed"}'
stop 3; read -r l`)
		b := setup(t, s, with, brief)
		b.start()
		id := b.session("Do it well", byFake)
		b.until(id, "it has answered", func(v store.Session) bool { return v.State.Base == journal.StateReady && v.Claim == nil })
		var rows []string
		for _, ev := range storetest.Events(t, s, id) {
			if ev.Kind == journal.KindAgentEvent {
				rows = append(rows, string(ev.Data))
			}
		}
		all := strings.Join(rows, "\n")
		if len(rows) != 3 || !strings.Contains(all, "WORDS-OF-NOBODY") || !strings.Contains(all, "image/odd") || !strings.Contains(all, "A-LIST") {
			t.Errorf("the journal has as it came:\n%s", all)
		}
	})
}

// A request for permission that can't be read is refused, and the journal says so, and
// what is wrong with it; what can be read in one way only is taken so.
//
// proves JRN-7 PER-1
func TestACP_AsksInAnotherForm(t *testing.T) {
	t.Parallel()
	const tool, options = `"toolCall":{"toolCallId":"t1","title":"rm 1","kind":"execute","rawInput":{"command":"rm 1"}}`, `"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]`
	for name, c := range map[string]struct{ params, wrong string }{
		"no id of a call":         {`"sessionId":"s1","toolCall":{"title":"rm 1","kind":"execute"},` + options, "toolCall: toolCallId: it is missing"},
		"an object for an id":     {`"sessionId":"s1","toolCall":{"toolCallId":{"a":1}},` + options, "toolCall: toolCallId: of a wrong type"},
		"no call":                 {`"sessionId":"s1",` + options, "toolCall: it is missing"},
		"no options":              {`"sessionId":"s1",` + tool, "options: it is missing"},
		"a text for options":      {`"sessionId":"s1","options":"yes",` + tool, "options: not a list"},
		"options of another form": {`"sessionId":"s1","options":[{"id":"o","label":"Yes"}],` + tool, "options: optionId: it is missing"},
		"a number for an id":      {`"sessionId":"s1",` + strings.Replace(tool, `"t1"`, `14`, 1) + `,` + options, ""},
		"no session":              {tool + `,` + options, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t, "sqlite").Open(t)
			heard, with := scripted(t, `hear; echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{`+c.params+`}}'; hear; stop 3; read -r l`)
			b := setup(t, s, with, brief)
			b.start()
			id := b.session("Do it", byFake)
			if c.wrong == "" {
				b.untilKind(id, journal.KindCallDispatched, 1)
			}
			b.untilKind(id, journal.KindTurnEnded, 1)
			evs := storetest.Events(t, s, id)
			told, err := os.ReadFile(heard)
			if c.wrong == "" {
				if err != nil || storetest.CountKind(evs, journal.KindAgentEvent) != 0 || !strings.Contains(string(told), `"optionId":"yes"`) {
					t.Errorf("it heard %s, %v; the journal:\n%s", told, err, b.dump(id))
				}
				return
			}
			got := storetest.Body[*journal.AgentEvent](t, evs)
			if !strings.HasPrefix(got.Malformed, c.wrong) || !strings.Contains(got.Raw.S, `"id":"q"`) || !strings.Contains(string(told), `"code":-32602`) {
				t.Errorf("the journal has %+v; it heard %s, %v", got, told, err)
			}
			storetest.CheckInvariants(t, s)
		})
	}
}

// What an agent that has nothing to do answers, although it was asked nothing, is in the
// journal, and so is what it asks then in a form that can't be read.
//
// proves JRN-7
func TestACP_AnswersNothingAtRest(t *testing.T) {
	t.Parallel()
	s := storetest.New(t, "sqlite").Open(t)
	_, with := scripted(t, `hear; stop 3; stop 3; stop 99; echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{}}'; text 'that was all'; read -r l`)
	b := setup(t, s, with)
	b.start()
	id := b.session("Do it", byFake)
	b.untilKind(id, journal.KindAgentEvent, 3)
	b.until(id, "it rests", func(v store.Session) bool { return v.State.Base == journal.StateReady })
	var got []string
	for _, ev := range storetest.Events(t, s, id) {
		if body, err := ev.Decode(); err == nil {
			if e, ok := body.(*journal.AgentEvent); ok {
				got = append(got, string(e.Outside)+" "+e.Malformed+" "+e.Raw.S)
			}
		}
	}
	want := []string{`turn  {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`, `turn  {"jsonrpc":"2.0","id":99,"result":{"stopReason":"end_turn"}}`, `turn toolCall: it is missing {"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{}}`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	storetest.CheckInvariants(t, s)
}
