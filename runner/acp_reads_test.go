package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What an agent calls a read, and says nothing more of, may have done anything: if the agent
// is lost in the midst of it, its outcome is unknown. What it says would be read, before it
// begins, only reads.
//
// proves CAL-2 CAL-4 CAL-7
func TestACP_ItsWordAloneIsNoRead(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		_, with := scripted(t, `call() { say '{"sessionUpdate":"tool_call","toolCallId":"'$1'","title":"'$1'","kind":"read","status":"'$2'","rawInput":'$3'}'; }
news() { say '{"sessionUpdate":"tool_call_update","toolCallId":"'$1'","status":"in_progress","rawInput":'$2'}'; }
hear
call blank in_progress '{}'; news blank '{"file_path":"late.txt"}'
call opencode pending '{}'; news opencode '{"filePath":"a.txt"}'
call claude pending '{"file_path":"a.txt"}'; news claude '{"file_path":"a.txt"}'
call changes pending '{"file_path":"a.txt"}'; news changes '{"file_path":"a.txt","content":"x"}'
call runs pending '{"command":"rm"}'; news runs '{"path":"a.txt"}'
exit 9`)
		b := setup(t, s, with)
		b.start()
		id := b.session("Do it", byFake)
		b.untilKind(id, journal.KindAttemptUnknown, 1)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range calls {
			got = append(got, fmt.Sprintf("%s: %s, %s", c.Key[strings.LastIndex(c.Key, "/")+1:], c.Effect, c.State))
		}
		slices.Sort(got)
		want := []string{"blank: effect, unknown", "changes: effect, unknown", "claude: read, cancelled", "opencode: read, cancelled", "runs: effect, unknown"}
		if !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}
