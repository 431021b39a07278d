package runner_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/acp"
	"holdfast/store"
	"holdfast/store/storetest"
)

const ofAnID = "s3cr3t-of-an-id"

// whoMasks are who may mask the secret first: the shim, before anything is read, or the
// journal.
var whoMasks = map[string]func(t *testing.T, b *bench){
	"the shim":    func(_ *testing.T, b *bench) { b.opts.Secrets = []string{ofAnID}; b.s.Mask(b.owner, ofAnID) },
	"the journal": func(_ *testing.T, b *bench) { b.s.Mask(b.owner, ofAnID) },
}

// An id that the agent is to be told again, and in which a secret stands, is never told
// masked: what follows from that is said, and nothing waits for ever.
//
// proves OWN-3 REC-12
func TestACP_ASecretInAnID(t *testing.T) {
	t.Parallel()
	ask := func(id, options string) string {
		return `echo '{"jsonrpc":"2.0","id":` + id + `,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t1"},"options":[` + options + `]}}'; hear
say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"failed"}'; stop 3; read -r l`
	}
	const runs = `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"touch made","kind":"execute","status":"pending","rawInput":{"command":"touch made"}}'; `
	const no = `{"optionId":"no","kind":"reject_once","name":"No"}`
	for name, c := range map[string]struct {
		body  string
		ends  journal.ExecutionState
		says  string
		hears string
	}{
		"of its session": {
			body: strings.ReplaceAll(hello, `"s1"`, `"`+ofAnID+`"`) + `hear; stop 3; read -r l`,
			ends: journal.StateFailed, says: "stays hidden for as long as this server runs",
		},
		"of an option": {
			body: hello + runs + ask(`0`, no+`,{"optionId":"yes-`+ofAnID+`","kind":"allow_once","name":"Yes"}`),
			ends: journal.StateReady, says: "it can't be allowed", hears: `{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}`,
		},
		"of all options": {
			body: hello + runs + ask(`0`, `{"optionId":"`+ofAnID+`","kind":"allow_once","name":"Yes"},{"optionId":"`+ofAnID+`!","kind":"reject_once","name":"No"}`),
			ends: journal.StateReady, says: "it can't be allowed", hears: `{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}`,
		},
		"of its request": {
			body: hello + runs + strings.Replace(ask(`"`+ofAnID+`"`, no), "; hear", "; exec sleep 1000", 1),
			ends: journal.StateUncertain, says: "it asked something that can't be answered",
		},
	} {
		for who, mask := range whoMasks {
			t.Run(name+", masked by "+who, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, s *store.Store) {
					heard, with := scriptedWhole(t, c.body, quietFor(0))
					b := setup(t, s, with)
					mask(t, b)
					b.start()
					id := b.session("Do it", byFake, asking)
					b.untilState(id, c.ends)
					if dump := b.dump(id); !strings.Contains(dump, c.says) || strings.Contains(dump, ofAnID) {
						t.Errorf("it doesn't say %q, or says the secret:\n%s", c.says, dump)
					}
					got, err := os.ReadFile(heard)
					if err != nil && !os.IsNotExist(err) || strings.Contains(string(got), journal.Hidden) || !strings.Contains(string(got), c.hears) {
						t.Errorf("the agent heard %q, %v; want %s, and no mask", got, err, c.hears)
					}
					if c.hears != "" {
						calls, err := s.Calls(t.Context(), b.owner, id, 0)
						if err != nil || len(calls) != 1 || calls[0].State != journal.CallIsRefused {
							t.Errorf("calls %+v, %v; want one that is refused", calls, err)
						}
					}
				})
			})
		}
	}
}

// An id that was learnt before what stands in it became a secret still does: the agent
// goes on with its session, and what it says is that session's.
//
// proves REC-12 OWN-3
func TestACP_AnIDBecomesASecret(t *testing.T) {
	t.Parallel()
	for who, mask := range whoMasks {
		t.Run("masked by "+who, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				const session = "ses-" + ofAnID
				heard, with := scriptedWhole(t, strings.ReplaceAll(strings.Replace(hello, `echo '{"jsonrpc":"2.0","id":2`, `printf '%s\n' "$l" >> "$HEARD"; echo '{"jsonrpc":"2.0","id":2`, 1), `"s1"`, `"`+session+`"`)+`hear; text heard; stop 3; read -r l`)
				b := setup(t, s, with)
				r := b.start()
				id := b.session("First", byFake)
				b.untilState(id, journal.StateReady)
				r.Stop()
				mask(t, b)
				b.next()
				b.submit(id, "Second", journal.Queue)
				v := b.until(id, "it has answered twice", func(v store.Session) bool {
					return v.State.Base == journal.StateReady && v.State.Turn.Number == 2 && v.Claim == nil
				})
				events := storetest.Events(t, s, id)
				if n := storetest.CountKind(events, journal.KindMessageCompleted); n != 2 || v.State.AgentSession != session {
					t.Errorf("%d messages, want 2; its session is %q\n%s", n, v.State.AgentSession, b.dump(id))
				}
				got, err := os.ReadFile(heard)
				if err != nil || strings.Contains(string(got), journal.Hidden) || strings.Count(string(got), session) != 3 {
					t.Errorf("the agent heard %q, %v; want its session's id with two prompts and as it is loaded", got, err)
				}
				if report, err := s.Verify(t.Context(), store.VerifyOptions{}); err != nil || !report.OK() {
					t.Errorf("verify says %+v, %v", report.Checks, err)
				}
			})
		})
	}
}

// A setting whose id or value is hidden is not told.
//
// proves OWN-3
func TestACP_ASecretInASetting(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const opens = `"sessionId":"s1"}}'`
		heard, with := scriptedWhole(t, strings.Replace(hello, opens, `"sessionId":"s1","configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"`+ofAnID+`","name":"B"}]}]}}'`, 1)+`hear; stop 3; read -r l`)
		b := setup(t, s, with)
		s.Mask(b.owner, ofAnID)
		b.start()
		id := b.session("Do it", byFake, func(n *store.NewSession) {
			n.Settings = []journal.Setting{{ID: "model", Value: journal.Hidden}}
		})
		b.untilState(id, journal.StateFailed)
		got, err := os.ReadFile(heard)
		if !os.IsNotExist(err) || !strings.Contains(b.dump(id), "can't be told to the agent for “Model”") {
			t.Errorf("the agent heard %q, %v:\n%s", got, err, b.dump(id))
		}
	})
}

// A look at such an agent says why its session is of no use.
//
// proves OWN-3
func TestACP_ALookFindsASecretInAnID(t *testing.T) {
	t.Parallel()
	o := runner.Options{}
	_, with := scriptedWhole(t, strings.ReplaceAll(hello, `"s1"`, `"`+ofAnID+`"`)+`while read -r l; do :; done`)
	with(&o)
	_, err := o.Agents[0].(*acp.Agent).Probe(context.WithoutCancel(t.Context()), t.TempDir(), "MODEL_KEY="+ofAnID)
	if err == nil || !strings.Contains(err.Error(), "contains the value of a credential") {
		t.Errorf("the look says %v", err)
	}
}
