package runner_test

import (
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner/acp"
	"holdfast/store/storetest"
)

// Wherever what an agent or its process says ends within a secret, or is cut off there, as
// its last words are, all but a few characters of it are hidden.
//
// proves OWN-3 JRN-8
func TestACP_WhatEndsWithinASecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-verysecret-0123456789"
	const begun = "sk-verysecret-012345678"
	const escaped = `\\u0073\\u006b\\u002d\\u0076\\u0065\\u0072\\u0079\\u0073\\u0065\\u0063\\u0072\\u0065\\u0074`
	const runs = inOther + `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"execute","status":"in_progress","rawInput":{"command":"x"}}'; `
	const dies = `say "$(out in_progress up)"; exit 3`
	for name, c := range map[string]struct {
		body string
		ends journal.ExecutionState
	}{
		"standard error":                     {hello + runs + `printf 'last words ` + begun + `' >&2; ` + dies, journal.StateUncertain},
		"standard error, with a line feed":   {hello + runs + `echo 'last words "` + begun + `".' >&2; ` + dies, journal.StateUncertain},
		"standard error, by numbers":         {hello + runs + `printf '{"last":"` + escaped + `' >&2; ` + dies, journal.StateUncertain},
		"standard error, in colours":         {hello + runs + `printf '\033[1msk-very\033[0msecret-01\033[' >&2; ` + dies, journal.StateUncertain},
		"standard error, before it is open":  {`printf 'no key: ` + begun + `' >&2; exit 3`, journal.StateFailed},
		"standard output, before it is open": {`echo 'no key: ` + begun + `'; exit 3`, journal.StateFailed},
		"a line that isn't ACP":              {hello + `hear; echo 'oh ` + begun + `'; stop 3; read -r l`, journal.StateReady},
		"a line that has no end":             {hello + `hear; printf '{"jsonrpc":"2.0","method":"session/update","params":{"a":"` + begun + `'; exit 3`, journal.StateUncertain},
		"a line that has no end, by numbers": {hello + `hear; printf '%s' '{"jsonrpc":"2.0","method":"session/update","params":{"a":"` + strings.ReplaceAll(escaped, `\\`, `\`) + `'; exit 3`, journal.StateUncertain},
		"an error":                           {hello + `hear; echo '{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"no: ` + begun + `","data":{"key":"` + begun + `"}}}'; read -r l`, journal.StateFailed},
		"an error, before it is open":        {`read -r l; echo '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no: ` + begun + `","data":{"key":"` + begun + `"}}}'; read -r l`, journal.StateFailed},
		"output that ends":                   {hello + runs + `say "$(out in_progress ` + begun + `)"; say "$(out completed '')"; stop 3; read -r l`, journal.StateReady},
		"output, of an agent that dies":      {hello + runs + `say "$(out in_progress ` + begun + `)"; exit 3`, journal.StateUncertain},
		"output, of a turn that ends":        {hello + runs + `say "$(out in_progress ` + begun + `)"; stop 3; read -r l`, journal.StateUncertain},
		"a tool's own result":                {hello + runs + `say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","rawOutput":{"key":"` + begun + `"}}'; stop 3; read -r l`, journal.StateReady},
		"what it says":                       {hello + `hear; text 'the key is ` + begun + `'; stop 3; read -r l`, journal.StateReady},
		"what it says, and dies":             {hello + `hear; text 'the key is ` + begun + `'; exit 3`, journal.StateUncertain},
		"a title":                            {hello + runs + `say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","title":"see ` + begun + `"}'; stop 3; read -r l`, journal.StateReady},
		"why the turn ended":                 {hello + `hear; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"` + begun + `"}}'; read -r l`, journal.StateFailed},
		"what it is":                         {strings.Replace(hello, `"protocolVersion":1,`, `"protocolVersion":1,"agentInfo":{"name":"`+begun+`","version":"`+begun+`"},`, 1) + `hear; stop 3; read -r l`, journal.StateReady},
	} {
		for who, mask := range map[string]func(t *testing.T, b *bench){
			"the shim":    func(_ *testing.T, b *bench) { b.opts.Secrets = []string{secret}; b.s.Mask(b.owner, secret) },
			"the journal": func(_ *testing.T, b *bench) { b.s.Mask(b.owner, secret) },
		} {
			t.Run(name+", masked by "+who, func(t *testing.T) {
				t.Parallel()
				s := storetest.New(t, "sqlite").Open(t)
				_, with := scriptedWhole(t, c.body, quietFor(0), func(o *acp.Options) { o.SilentWithin = 1 })
				b := setup(t, s, with)
				mask(t, b)
				b.start()
				id := b.session("Do it", byFake)
				b.untilState(id, c.ends)
				wantNone(t, b.dump(id), secret)
				storetest.CheckInvariants(t, s)
			})
		}
	}
}

// wantNone fails if a text shows too much of a secret.
func wantNone(t *testing.T, text, secret string) {
	t.Helper()
	for _, piece := range []string{secret[:9], secret[len(secret)-9:], `\\u006b\\u002d\\u0076\\u0065\\u0072\\u0079\\u0073\\u0065\\u0063`} {
		if at := strings.Index(text, piece); at >= 0 {
			t.Errorf("it shows %q: …%s", piece, text[max(0, at-300):min(len(text), at+100)])
		}
	}
}

// What of an output waits, as it might begin a secret, stands in the journal once it is
// known that it doesn't, whatever becomes of its call.
//
// proves JRN-5 JRN-8
func TestACP_OutputLosesNoLetter(t *testing.T) {
	t.Parallel()
	const tells = inOther + `hear; say '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"x","kind":"execute","status":"in_progress","rawInput":{"command":"x"}}'
for o in files others third fourths; do say "$(out in_progress $o)"; done; `
	for name, c := range map[string]struct {
		body string
		ends journal.ExecutionState
	}{
		"it ends":                 {`say '{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}'; stop 3; read -r l`, journal.StateReady},
		"the turn ends before it": {`stop 3; read -r l`, journal.StateUncertain},
		"the agent is gone":       {`exit 1`, journal.StateUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t, "sqlite").Open(t)
			_, with := scripted(t, tells+c.body)
			b := setup(t, s, with)
			b.s.Mask(b.owner, "sk-verysecret-0123456789")
			b.start()
			id := b.session("Do it", byFake)
			b.untilState(id, c.ends)
			if got := b.output(id, 0); got != "files\nothers\nthird\nfourths" {
				t.Errorf("the output is %q", got)
			}
			storetest.CheckInvariants(t, s)
		})
	}
}
