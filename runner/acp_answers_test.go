package runner_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What an agent calls the one answer that a person's choice gives is kept with the request,
// unless it is the plain word for that.
//
// proves PER-2
func TestACP_NamesTheAnswers(t *testing.T) {
	t.Parallel()
	const odd, no = "Yes, and trust make", "No, stop"
	for name, c := range map[string]struct{ allows, rejects, once, reject string }{
		"plain": {"Yes", "No", "", ""},
		"both":  {odd, no, odd, no},
		"one":   {"Allow Once", no, "", no},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, s *store.Store) {
				_, with := scripted(t, strings.NewReplacer(`"name":"No"`, `"name":"`+c.rejects+`"`, `"name":"Yes"`, `"name":"`+c.allows+`"`).Replace(askRun)+"read -r l")
				b := setup(t, s, with)
				b.start()
				id := b.session("Do it", byFake, asking)
				b.untilKind(id, journal.KindPermissionAsked, 1)
				for _, r := range b.pending(id) {
					var said struct {
						Once   string `json:"once_is"`
						Reject string `json:"reject_is"`
					}
					must(t, json.Unmarshal(r.Metadata, &said))
					if said.Once != c.once || said.Reject != c.reject {
						t.Errorf("the answers are called %q and %q, want %q and %q", said.Once, said.Reject, c.once, c.reject)
					}
				}
			})
		})
	}
}
