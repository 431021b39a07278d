package runner_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/runner"
	"holdfast/runner/tool"
	"holdfast/store"
	"holdfast/store/storetest"
	"holdfast/vault"
)

// worksAndAsks is an agent that talks, works, asks, and does it again.
const worksAndAsks = `round() { hear; text 'it is completed and '; text done
say '{"sessionUpdate":"tool_call","toolCallId":"t'$1'","title":"touch made","kind":"execute","status":"pending","rawInput":{"command":"touch made","completed":12345678}}'
echo '{"jsonrpc":"2.0","id":'$1',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t'$1'"},"options":[{"optionId":"reject_once","kind":"reject_once","name":"No"},{"optionId":"allow_once","kind":"allow_once","name":"Yes"}]}}'
hear
case $l in
*'"optionId":"allow_once"'*) say '{"sessionUpdate":"tool_call_update","toolCallId":"t'$1'","status":"completed","content":[{"type":"content","content":{"type":"text","text":"made it"}}]}' ;;
*) say '{"sessionUpdate":"tool_call_update","toolCallId":"t'$1'","status":"failed"}' ;;
esac
stop $2
}
round 1 3; round 2 5; read -r l
`

// Who stores a word of the protocol or of the journal as a credential loses no session
// by it.
//
// proves OWN-3 JRN-8
func TestACP_CredentialsLikeWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	alone := []string{"completed", "sessionUpdate", "message_chunk", "att_01a22e"}
	words := append([]string{
		"toolCallId", "end_turn", "attempt_id", "call_01a2", "prompt_id", "allow_once", "optionId",
		"session/update", "request_permission", "stopReason", "tool_call_update", "in_progress", "succeeded", "effect_class", "input_sha256", "interrupted", "assistant",
		"the ----", `"type":"`, `":{"type":`, `jsonrpc":"2.0`, "process_id", "external_directory", "exit_record", "mission_", "[[[[[[[[[", "holdfast",
	}, alone...)
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.Open(t)
		source := vault.Source{File: filepath.Join(t.TempDir(), "key")}
		keeper, err := vault.Open(t.Context(), s, source)
		must(t, err)
		for _, word := range append(alone, strings.Join(words, "\n")) {
			_, with := scripted(t, worksAndAsks)
			b := setup(t, s, with, func(o *runner.Options) { o.Credentials = keeper })
			for i, w := range strings.Split(word, "\n") {
				_, err := keeper.Put(t.Context(), b.owner, vault.New{Name: "A_" + strings.Repeat("A", i), Value: w, Key: w})
				must(t, err)
			}
			r := b.start()
			id := b.session("Do it", byFake, asking)
			for turn := 1; turn <= 2; turn++ {
				b.untilKind(id, journal.KindPermissionAsked, turn)
				rs := b.pending(id)
				b.decide(rs[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: rs[0].Digest})
				b.until(id, "it has answered", func(v store.Session) bool {
					return v.State.Turn != nil && v.State.Turn.Number == turn && !v.State.TurnOpen() && v.Claim == nil
				})
				if turn == 1 {
					b.submit(id, "Again", journal.Queue)
				}
			}
			v := b.until(id, "it rests", func(v store.Session) bool { return v.Claim == nil })
			events := storetest.Events(t, s, id)
			if n := storetest.CountKind(events, journal.KindAttemptSettled); v.State.Base != journal.StateReady || n != 2 || storetest.CountKind(events, journal.KindMessageCompleted) < 2 {
				t.Errorf("with %q it is %s after %d attempts: %s", word, v.State.Base, n, b.dump(id))
			}
			for i := range 2 {
				calls, err := s.Calls(t.Context(), b.owner, id, 0)
				if err != nil || len(calls) != 2 || calls[i].State != journal.CallSucceeded || b.output(id, i) != "made it" {
					t.Errorf("with %q its calls are %+v, %v", word, calls, err)
				}
			}
			r.Stop()
		}
		report, err := s.Verify(t.Context(), store.VerifyOptions{})
		if err != nil || !report.OK() {
			t.Errorf("verify says %+v, %v", report.Checks, err)
		}
	})
}

// What is masked in the bytes of a line of JSON makes no other line of it; what isn't
// masked there is so where the line is read.
//
// proves OWN-3
func TestProcessSpec_MasksNoStructure(t *testing.T) {
	t.Parallel()
	const line = `{"jsonrpc":"2.0","n":123456789,"list":[[[[[[[[[1.5e10,true,false]]]]]]]]],"status":"completed","text":"a \"b\": s3cr3t/\"q&of-mine C:\\dir\\file key"}`
	spec := runner.ProcessSpec{Shape: &journal.Shape{Words: map[string][]string{"status": {"completed"}}, Names: map[string]bool{"jsonrpc": true}}}
	for value, masked := range map[string]bool{
		"12345678": false, "[[[[[[[[": false, "1.5e10,true,false": false, `"2.0","n":`: false, `:"complet`: false, "complete": false, "completed": false,
		`":"2.0","n":123`: false, `e,false]]]`: false, `s3cr3t/"q&of-mine`: true, `C:\dir\file`: true, "file key": true, `"b": s3cr3t`: true,
	} {
		f := tool.NewJSONFilter(spec.Masks([]string{value}))
		got := f.Write([]byte(line)) + f.Flush()
		if !json.Valid([]byte(got)) || strings.Contains(got, journal.Hidden) != masked {
			t.Errorf("with %s the line is %s", value, got)
		}
	}
	if got := (runner.ProcessSpec{}).Masks([]string{"12345678"}); len(got) != 1 {
		t.Errorf("of what is no JSON %q is masked", got)
	}
}
