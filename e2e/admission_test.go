package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// burst sends the same request n times at once, spread over the servers, and
// gives the answers.
func burst(t *testing.T, n int, path string, body any, key string, servers ...*server) []answer {
	t.Helper()
	answers, errs := make([]answer, n), make([]error, n)
	barrier := make(chan struct{})
	var ready, done sync.WaitGroup
	for i := range n {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			ready.Done()
			<-barrier
			answers[i], errs[i] = servers[i%len(servers)].do(ctx, http.MethodPost, path, body, "Idempotency-Key", key)
		}()
	}
	ready.Wait()
	close(barrier)
	done.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatalf("a submission got no answer: %v", err)
		}
	}
	return answers
}

// proves ADM-1 ADM-2 ADM-3 ADM-4 ADM-9 LEA-9
func TestE2E_TwentySubmissionsUnderOneKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		servers := []*server{w.serve()}
		if w.db.Name == "postgres" {
			servers = append(servers, w.serve(as("2")))
		}
		s := servers[0]
		id := s.mission("")
		key, body := newKey(), map[string]string{"text": steps(effect("once")), "delivery": "queue"}
		path := "/api/v1/sessions/" + id + "/prompts"

		first := sameReceipt(t, w, burst(t, 20, path, body, key, servers...))
		s.untilState(id, "ready")
		if n := s.events(id).count("prompt.admitted"); n != 1 {
			t.Errorf("%d prompt.admitted, want 1", n)
		}
		w.wantEffect("once", 1)

		t.Run("another payload is 422", func(t *testing.T) {
			other := map[string]string{"text": "another", "delivery": "queue"}
			s.post(path, other, "Idempotency-Key", key).problem(t, http.StatusUnprocessableEntity, "")
		})
		t.Run("another session is 422", func(t *testing.T) {
			elsewhere := s.mission("")
			s.post("/api/v1/sessions/"+elsewhere+"/prompts", body, "Idempotency-Key", key).problem(t, http.StatusUnprocessableEntity, "")
			if n := len(s.events(elsewhere)); n != 1 {
				t.Errorf("the refused prompt left %d events, want session.created alone", n)
			}
		})
		t.Run("no key is 400", func(t *testing.T) {
			s.post(path, body).problem(t, http.StatusBadRequest, "idempotency-key-missing")
			s.post(path, body, "Idempotency-Key", "two words").problem(t, http.StatusBadRequest, "idempotency-key-malformed")
			s.post("/api/v1/sessions", w.newSession("")).problem(t, http.StatusBadRequest, "idempotency-key-missing")
		})
		before := s.events(id).last()

		for _, one := range servers {
			one.kill9()
			one.restart()
		}
		again := sameReceipt(t, w, burst(t, len(servers), path, body, key, servers...))
		if again.ID != first.ID || again.AdmittedSeq != first.AdmittedSeq || again.CreatedAt != first.CreatedAt || !again.Replayed {
			t.Errorf("after kill -9 the receipt is %+v, was %+v", again, first)
		}
		known := decode[items[struct {
			Operation, State string
			Receipt          receipt
		}]](t, s.get("/api/v1/receipts/"+key).want(t, http.StatusOK)).Items
		if len(known) != 1 || known[0].Operation != "prompts.create" || known[0].Receipt.ID != first.ID {
			t.Errorf("the address of the key gives %+v", known)
		}
		if last := s.untilQuiet(id, "ready").LastSeq; last != before {
			t.Errorf("the refusals, the restart and the replay wrote the events %d to %d", before+1, last)
		}
		w.wantEffect("once", 1)
	})
}

// sameReceipt fails unless all answers are 202 with one receipt, of which at
// most one isn't marked as a replay, and gives it.
func sameReceipt(t *testing.T, w *world, answers []answer) receipt {
	t.Helper()
	var first receipt
	fresh := 0
	for i, a := range answers {
		r := w.acknowledged(decode[receipt](t, a.want(t, http.StatusAccepted)))
		if i == 0 {
			first = r
		}
		if r.ID != first.ID || r.AdmittedSeq != first.AdmittedSeq {
			t.Errorf("two receipts for one key: %+v and %+v", first, r)
		}
		if marked := a.header.Get("Idempotent-Replayed") == "true"; marked != r.Replayed {
			t.Errorf("the header says replayed=%v, the receipt %v", marked, r.Replayed)
		}
		if !r.Replayed {
			fresh++
		}
	}
	if fresh > 1 {
		t.Errorf("%d answers say that they are the first", fresh)
	}
	return first
}

// proves ADM-3 ADM-6
func TestE2E_TwentySessionsUnderOneKey(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		servers := []*server{w.serve()}
		if w.db.Name == "postgres" {
			servers = append(servers, w.serve(as("2")))
		}
		key := newKey()
		ids := map[string]bool{}
		for _, a := range burst(t, 20, "/api/v1/sessions", w.newSession(steps(effect("once"))), key, servers...) {
			ids[decode[session](t, a.want(t, http.StatusCreated)).ID] = true
		}
		if len(ids) != 1 {
			t.Fatalf("one key made the sessions %v", ids)
		}
		for id := range ids {
			w.remember(id)
			servers[0].untilState(id, "ready")
		}
		w.wantEffect("once", 1)
		if n := w.db.Count(t, w.sql(), "SELECT count(*) FROM session"); n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	})
}

// A retry after a crash finds what was admitted, and gets it drained.
// proves ADM-5 ADM-7 REC-9
func TestE2E_ARetryAfterTheCrashGetsThePromptDrained(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		s := w.serve(flags(quick...))
		gate, up := w.gate("gate"), w.gate("up")
		id := s.mission(steps(up.Tell("up")+"; "+gate.Read(), effect("first")))
		up.Wait()
		key, text := newKey(), steps(effect("second"))
		queued := s.promptAs(key, id, text, "queue")
		s.powerCut()
		s.restart()
		s.untilState(id, "uncertain")
		again := s.promptAs(key, id, text, "queue")
		if again.ID != queued.ID || !again.Replayed {
			t.Errorf("the retry got %+v, want the receipt of %s", again, queued.ID)
		}
		unknown := s.untilKind(id, "call.unknown", 1)
		callID := unknown.of("call.unknown")[0].str("call_id")
		s.resolve(callID, "happened", "continue").want(t, http.StatusOK)
		s.untilKind(id, "turn.ended", 2)
		s.untilState(id, "ready")
		w.wantEffect("first", 1)
		w.wantEffect("second", 1)
		if got := fmt.Sprint(s.session(id).PendingPrompts); got != "0" {
			t.Errorf("%s prompts wait", got)
		}
	})
}
