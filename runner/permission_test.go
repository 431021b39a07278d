package runner_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/journal"
	"holdfast/store"
	"holdfast/store/storetest"
)

func (b *bench) pending(session string) []*journal.Request {
	b.t.Helper()
	rs, _, err := b.s.Requests(b.t.Context(), b.owner, store.RequestQuery{State: journal.RequestPending, Session: session})
	if err != nil {
		b.t.Fatal(err)
	}
	return rs
}

func (b *bench) decide(id string, d store.Decision) {
	b.t.Helper()
	if _, err := b.s.Decide(b.t.Context(), b.owner, id, d); err != nil {
		b.t.Fatal(err)
	}
}

// One call asks once for each permission; it runs when all are allowed.
//
// proves PER-1 PER-2 CAL-1
func TestRunner_AsksForEachPermission(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo hello > out"), asking)
		b.untilState(id, journal.StateWaiting)
		rs := b.pending(id)
		if len(rs) != 2 || rs[0].Permission == rs[1].Permission {
			t.Fatalf("requests %+v, want one for shell and one for edit", rs)
		}
		b.decide(rs[0].ID, store.Decision{Reply: journal.ReplyOnce, Digest: rs[0].Digest})
		if v := b.untilState(id, journal.StateWaiting); b.file("out") != "" || len(v.State.Pending) != 1 {
			t.Errorf("it ran, or asks otherwise, with one of two allowed")
		}
		b.decide(rs[1].ID, store.Decision{Reply: journal.ReplyOnce})
		b.untilState(id, journal.StateReady)
		if b.file("out") != "hello\n" {
			t.Error("it didn't run when all was allowed")
		}
	})
}

// Who is asked is told why no rule may allow it.
//
// proves PER-2
func TestRunner_SaysWhyItAsks(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("sudo -n true; doas true"), asking)
		b.untilState(id, journal.StateWaiting)
		var meta struct {
			Always bool     `json:"always_asks"`
			Why    []string `json:"asks_why"`
		}
		if err := json.Unmarshal(b.pending(id)[0].Metadata, &meta); err != nil {
			t.Fatal(err)
		}
		if want := []string{"sudo acts as another person", "doas acts as another person"}; !meta.Always || !slices.Equal(meta.Why, want) {
			t.Errorf("always %v, since %q; want %q", meta.Always, meta.Why, want)
		}
	})
}

// proves PER-3 PRO-5
func TestRunner_Reject(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		plain := b.session(steps("echo a >> log", "echo b >> log"), asking)
		b.untilState(plain, journal.StateWaiting)
		b.decide(b.pending(plain)[0].ID, store.Decision{Reply: journal.ReplyReject})
		v := b.untilState(plain, journal.StateStopped)
		if v.State.Turn.Reason != "rejected" || !v.State.Held || len(b.pending(plain)) != 0 {
			t.Errorf("after a plain rejection: %+v", v.State.Turn)
		}

		talk := b.session("```sh on-error=continue\necho a >> log\n```\n\n```sh\necho b\n```\n", asking)
		b.untilState(talk, journal.StateWaiting)
		b.decide(b.pending(talk)[0].ID, store.Decision{Reply: journal.ReplyReject, Message: "not on a Sunday"})
		b.until(talk, "the next step asks", func(v store.Session) bool { return v.Claim == nil && len(v.State.Pending) == 1 })
		calls, err := s.Calls(t.Context(), b.owner, talk, 0)
		if err != nil || calls[0].State != journal.CallIsRefused || calls[0].Feedback != "not on a Sunday" {
			t.Errorf("refused call %+v, %v", calls[0], err)
		}
		if b.file("log") != "" {
			t.Error("a refused call ran")
		}
	})
}

// A rule that denies wins over what is allowed beside it, and nothing is asked.
//
// proves CAL-3
func TestRunner_DeniedByARule(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo ok; rm -rf sub"), func(n *store.NewSession) {
			n.Rules = append(n.Rules, journal.Rule{Permission: "shell", Pattern: "rm *", Action: "deny"})
		})
		b.untilState(id, journal.StateFailed)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || calls[0].State != journal.CallIsRefused {
			t.Errorf("call %+v, %v; want refused", calls[0], err)
		}
	})
}

// A redirect through a link that leads out of the workspace is asked, whatever the rules say of the name.
//
// proves PER-1
func TestRunner_LinksAreResolvedBeforeRulesAreAsked(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s)
		outside := t.TempDir()
		if err := os.Symlink(outside, filepath.Join(b.dir, "link")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"round", "trip"} { // a circle lies nowhere
			if err := os.Symlink("trip", filepath.Join(b.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		b.start()
		for _, script := range []string{"echo x > link/file", "echo x > trip", "echo x > round/deep"} {
			id := b.session(steps(script))
			b.untilState(id, journal.StateWaiting)
			if rs := b.pending(id); len(rs) != 1 || rs[0].Permission != "external_directory" {
				t.Errorf("%s asks %+v, want external_directory", script, rs)
			}
		}
		if err := os.WriteFile(filepath.Join(outside, "o.txt"), []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(outside, "o.txt"), filepath.Join(b.dir, "a file")); err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{
			"cat 'a file'", "cat a\\ file", "cat link/o.txt", "ls link/", "find link/", "grep -r x link", "cd link && cat o.txt", "for f in link/*; do cat $f; done", "cat *", "cat l?nk/*.txt", "x=link; cat ${x}/o.txt", "wc --files0-from=link/o.txt",
		} {
			id := b.session(steps(script))
			b.untilState(id, journal.StateWaiting)
			asks := false
			for _, r := range b.pending(id) {
				asks = asks || r.Permission == "external_directory" || r.Permission == "shell"
			}
			if !asks {
				t.Errorf("%s asks %+v", script, b.pending(id))
			}
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(b.dir, "a", "b"), 0o700), os.Symlink(filepath.Join(outside, "o.txt"), filepath.Join(b.dir, "a", "b", "deep")), os.Symlink(outside, filepath.Join(b.dir, "a", "b", "dir"))); err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{
			"cd a && cd b && cat deep", "cd a; cd b; cat deep", "cd a && (cd b && cat deep)", "cd a && { cd b; cat deep; }", "cd a; cd ./b; head -n 3 deep", "cd a && cd b && ls dir/", "cd a/b && cd .. && cat b/deep",
		} {
			id := b.session(steps(script))
			b.untilState(id, journal.StateWaiting)
			if rs := b.pending(id); len(rs) != 1 || rs[0].Permission != "external_directory" {
				t.Errorf("%s asks %+v, want external_directory", script, rs)
			}
		}
		if err := os.Symlink(".env", filepath.Join(b.dir, "notes.txt")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.dir, ".env"), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		hidden := b.session(steps("cat notes.txt"), func(n *store.NewSession) {
			n.Rules = append(n.Rules, journal.Rule{Permission: "read", Pattern: "*.env", Action: "deny"})
		})
		b.untilState(hidden, journal.StateFailed) // the rule is about the file, not about its other name
		if err := os.Remove(filepath.Join(outside, "o.txt")); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(outside)
		if err != nil || len(entries) != 0 {
			t.Errorf("outside %v, %v: something was written", entries, err)
		}
	})
}

// Rules that were changed since they were evaluated are evaluated again before a call runs.
//
// proves CAL-9
func TestRunner_EvaluatesAgainWhenRulesChange(t *testing.T) {
	t.Parallel()
	storetest.EachDB(t, func(t *testing.T, db *storetest.DB) {
		s := db.OpenUnchecked(t) // rules are changed behind the journal's back: there is no door for it yet
		b := setup(t, s)
		b.start()
		id := b.session(steps("echo a >> log"), asking)
		b.untilState(id, journal.StateWaiting)
		rs := b.pending(id)
		b.decide(rs[0].ID, store.Decision{Reply: journal.ReplyOnce})
		b.untilState(id, journal.StateWaiting)
		raw := db.SQL(t)
		db.MustExec(t, raw, "UPDATE session SET rules_version = rules_version + 1, rules = '[{\"permission\":\"shell\",\"pattern\":\"*\",\"action\":\"deny\"}]' WHERE id = ?", id)
		b.decide(rs[1].ID, store.Decision{Reply: journal.ReplyOnce})
		b.untilState(id, journal.StateFailed)
		if b.file("log") != "" {
			t.Error("a call ran by an answer that the rules have overtaken")
		}
	})
}

// proves CAL-6 CAL-4 CAL-7 PRO-6
func TestRunner_UnknownIsAskedOfThePerson(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for _, c := range []struct {
			verdict journal.Verdict
			log     string
			base    journal.ExecutionState
			plan    journal.PlanItem // its first line, at the end
		}{
			{journal.Happened, "begun\nnext\n", journal.StateReady, journal.PlanItem{State: journal.PlanDone}},
			{journal.InPart, "begun\nnext\n", journal.StateReady, journal.PlanItem{State: journal.PlanUnknown, Found: journal.InPart}},
			{journal.CannotTell, "begun\nnext\n", journal.StateReady, journal.PlanItem{State: journal.PlanUnknown, Found: journal.CannotTell}},
			{journal.DidNotHappen, "begun\n", journal.StateWaiting, journal.PlanItem{State: journal.PlanWaiting}}, // proposed again, and always asks
		} {
			b := setup(t, s, quick)
			b.fifo("gate")
			r := b.start()
			id := b.session(steps("echo begun >> log; read x < gate", "echo next >> log"))
			b.untilKind(id, journal.KindCallDispatched, 1)
			b.until(id, "the effect began", func(store.Session) bool { return b.file("log") != "" })
			b.steal(id)
			b.until(id, "the fenced drain has ended", func(store.Session) bool { return len(r.Active()) == 0 })
			v := b.untilState(id, journal.StateUncertain)
			r.Wake(id) // nothing acts by itself
			if _, err := s.ResolveCall(t.Context(), b.owner, v.State.UnknownCalls[0], store.CallResolution{Outcome: c.verdict, Evidence: "looked", Then: journal.ThenContinue}); err != nil {
				t.Fatal(err)
			}
			b.until(id, "the plan says what was found", func(v store.Session) bool {
				first := v.State.Plan[0]
				return first.State == c.plan.State && first.Found == c.plan.Found && v.State.Base == c.base
			})
			b.untilState(id, c.base)
			if got := b.file("log"); got != c.log {
				t.Errorf("%s: log %q, want %q", c.verdict, got, c.log)
			}
			r.Stop()
		}
	})
}

// What may be run again is, under the same id with the next number, and never blocks.
//
// proves CAL-2 CAL-4
func TestRunner_RunsReadsAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		b := setup(t, s, quick)
		gate := b.fifo("gate")
		b.start()
		id := b.session("```sh effect=read\necho begun >> log; read x < gate; echo done >> log\n```\n")
		b.untilKind(id, journal.KindCallDispatched, 1)
		b.until(id, "it began", func(store.Session) bool { return b.file("log") != "" })
		b.steal(id)
		b.untilKind(id, journal.KindCallDispatched, 2)
		open(t, gate)
		b.untilState(id, journal.StateReady)
		calls, err := s.Calls(t.Context(), b.owner, id, 0)
		if err != nil || len(calls) != 1 || calls[0].N != 2 {
			t.Errorf("calls %+v, %v; want one, dispatched twice", calls[0], err)
		}
	})
}
