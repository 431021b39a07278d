package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

// What a person has allowed is what they read. If the same words mean another
// file by the time that the command would run, the person is asked anew.
//
// proves PER-4 PER-1
func TestRunner_AsksAgainWhenTheFileIsAnother(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		link := filepath.Join(b.dir, "link")
		point := func(to string) {
			t.Helper()
			if err := os.RemoveAll(link); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{"drafts", "live"} {
			if err := os.Mkdir(filepath.Join(b.dir, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		point("drafts")
		b.start()
		id := b.session(steps("echo x > link/file"), func(n *store.NewSession) {
			n.Preset, n.Rules = "ask_all", []journal.Rule{{Permission: "shell", Pattern: "*", Action: "allow"}}
		})
		b.untilState(id, journal.StateWaiting)
		first := b.pending(id)
		if len(first) != 1 || !slices.Equal(first[0].Resources, []string{"drafts/file"}) {
			t.Fatalf("it asks %+v, want for drafts/file", first)
		}
		point("live")
		b.decide(first[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: first[0].Digest})
		b.until(id, "it is asked again, or has run", func(v store.Session) bool {
			state, _ := v.Execution()
			return v.Claim == nil && (state == journal.StateWaiting || state == journal.StateReady)
		})
		again := b.pending(id)
		if len(again) != 1 || again[0].ID == first[0].ID || !slices.Equal(again[0].Resources, []string{"live/file"}) {
			t.Errorf("pending are %+v, want one request for live/file", again)
		}
		if b.file("live/file") != "" {
			t.Error("it has written what nobody allowed")
		}
	})
}

// A step whose rules have changed since its drain read them is judged anew, and
// runs only if it may now.
//
// proves CAL-1 CAL-9
func TestRunner_RunsNothingByRulesThatHaveChanged(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t) // rules are changed behind the journal's back: there is no door for it yet
		b := setup(t, s)
		gate := b.fifo("gate")
		b.start()
		id := b.session(steps("read x < gate; echo a >> log", "echo b >> log"))
		b.untilKind(id, journal.KindCallDispatched, 1)
		raw := db.SQL(t)
		db.MustExec(t, raw, "UPDATE session SET rules_version = rules_version + 1, rules = '[{\"permission\":\"shell\",\"pattern\":\"*\",\"action\":\"deny\"}]' WHERE id = ?", id)
		open(t, gate)
		b.untilState(id, journal.StateFailed)
		if got := b.file("log"); got != "a\n" {
			t.Errorf("log %q, want the first step alone", got)
		}
	})
}
