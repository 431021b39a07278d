package handlers

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"holdfast/journal"
	"holdfast/store/storetest"
)

func TestIdempotency_Prompt(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		t.Run("20 at once under one key are one ADM-1 ADM-3", func(t *testing.T) {
			id := w.session(t, w.alice)
			path := "/api/v1/sessions/" + id + "/prompts"
			answers := make([]answer, 20)
			var start, done sync.WaitGroup
			start.Add(1)
			for i := range answers {
				done.Go(func() {
					start.Wait()
					answers[i] = w.do(t, post, path, as(w.alice), key("same"), sendsJSON(`{"text":"hi","delivery":"queue"}`))
				})
			}
			start.Done()
			done.Wait()
			firsts, ids := 0, map[any]bool{}
			for _, a := range answers {
				r := a.want(t, http.StatusAccepted)
				ids[r["id"]] = true
				if replayed := r["replayed"] == true; replayed != (a.header.Get("Idempotent-Replayed") == "true") {
					t.Errorf("replayed is %v, but the header %q", replayed, a.header.Get("Idempotent-Replayed"))
				} else if !replayed {
					firsts++
				}
			}
			if firsts != 1 || len(ids) != 1 {
				t.Errorf("%d answers are first ones, with %d ids; want 1 and 1", firsts, len(ids))
			}
			if n := storetest.CountKind(storetest.Events(t, w.store, id), journal.KindPromptAdmitted); n != 1 {
				t.Errorf("got %d events, want 1", n)
			}
		})
		t.Run("what counts as the same ADM-2 ADM-3 ADM-4", func(t *testing.T) { samePayload(t, w) })
		t.Run("a retry wakes the session ADM-5", func(t *testing.T) {
			path := "/api/v1/sessions/" + w.session(t, w.alice) + "/prompts"
			w.do(t, post, path, as(w.alice), key("w"), sendsJSON(`{"text":"hi"}`)).want(t, http.StatusAccepted)
			work := w.store.SubscribeWork()
			defer work.Close()
			w.do(t, post, path, as(w.alice), key("w"), sendsJSON(`{"text":"hi"}`)).want(t, http.StatusAccepted)
			select {
			case <-work.C():
			default:
				t.Error("the replay woke nobody")
			}
		})
	})
}

func samePayload(t *testing.T, w *world) {
	t.Helper()
	id, other := w.session(t, w.alice), w.session(t, w.alice)
	path := "/api/v1/sessions/" + id + "/prompts"
	first := w.do(t, post, path, as(w.alice), key("k"), sendsJSON(`{"text":"caf\u00e9\nx","delivery":"queue"}`)).want(t, http.StatusAccepted)
	for _, tt := range []struct {
		name, path, key, body string
		status                int
	}{
		{"as it was", path, "k", `{"text":"café\nx","delivery":"queue"}`, 202},
		{"without the default", path, "k", `{"text":"café\nx"}`, 202},
		{"CRLF", path, "k", `{"text":"café\r\nx"}`, 202},
		{"decomposed", path, "k", `{"text":"cafe\u0301\nx"}`, 202},
		{"quoted key", path, `"k"`, `{"text":"café\nx"}`, 202},
		{"a blank more", path, "k", `{"text":"café\nx "}`, 422},
		{"another delivery", path, "k", `{"text":"café\nx","delivery":"steer"}`, 422},
		{"another session", "/api/v1/sessions/" + other + "/prompts", "k", `{"text":"café\nx"}`, 422},
	} {
		raw := w.db.SQL(t)
		before := w.db.RowCounts(t, raw)
		a := w.do(t, post, tt.path, as(w.alice), key(tt.key), sendsJSON(tt.body))
		if a.status != tt.status {
			t.Errorf("%s: got %d %s, want %d", tt.name, a.status, a.body, tt.status)
			continue
		}
		if got := a.want(t, tt.status); tt.status == 202 && (got["id"] != first["id"] || got["replayed"] != true) {
			t.Errorf("%s: got %v, want a replay of %v", tt.name, got, first)
		} else if tt.status == 422 {
			a.wantProblem(t, 422, "idempotency-key-reused")
		}
		if after := w.db.RowCounts(t, raw); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: rows were written", tt.name)
		}
	}
	// The key is mallory's own as well, and another operation's.
	theirs := w.session(t, w.mallory)
	w.do(t, post, "/api/v1/sessions/"+theirs+"/prompts", as(w.mallory), key("k"), sendsJSON(`{"text":"mine"}`)).want(t, http.StatusAccepted)
	w.do(t, post, "/api/v1/sessions", as(w.alice), key("k"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook"}`)).want(t, http.StatusCreated)
}

func TestIdempotency_Session(t *testing.T) {
	// proves ADM-2 ADM-4 ADM-6
	onEach(t, func(t *testing.T, w *world) {
		body := `{"workspace":"/srv/x","agent":"runbook","prompt":{"text":"\n  Rotate the keys \nthen rest"}}`
		a := w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(body))
		first := a.want(t, http.StatusCreated)
		if a.header.Get("Idempotent-Replayed") != "" || a.header.Get("Location") != fmt.Sprint("/api/v1/sessions/", first["id"]) {
			t.Errorf("got the headers %v", a.header)
		}
		if first["title"] != "Rotate the keys" || first["pending_prompts"] != 1.0 || first["last_seq"] != 2.0 {
			t.Errorf("got %s", a.body)
		}
		a = w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(body))
		again := a.want(t, http.StatusCreated)
		if again["id"] != first["id"] || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %v %v, want a replay", again["id"], a.header)
		}
		kinds := storetest.Kinds(storetest.Events(t, w.store, first["id"].(string)))
		if want := []journal.Kind{journal.KindSessionCreated, journal.KindPromptAdmitted}; !reflect.DeepEqual(kinds, want) {
			t.Errorf("got the events %v, want %v", kinds, want)
		}
		other := `{"workspace":"/srv/y","agent":"runbook","prompt":{"text":"\n  Rotate the keys \nthen rest"}}`
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(other)).wantProblem(t, http.StatusUnprocessableEntity, "idempotency-key-reused")
		bare := w.do(t, post, "/api/v1/sessions", as(w.alice), key("s2"), sendsJSON(`{"workspace":"/srv/x","agent":"runbook"}`)).want(t, http.StatusCreated)
		if bare["title"] != "Untitled" || bare["state"] != "idle" {
			t.Errorf("got %v", bare)
		}
	})
}

// A retry of a session is answered although its folder is gone since.
func TestCreateSession_RetryOutlivesTheWorkspace(t *testing.T) {
	// proves ADM-3 ADM-6
	onEach(t, func(t *testing.T, w *world) {
		const body = `{"workspace":"/srv/x","agent":"runbook","prompt":{"text":"hi"}}`
		made := w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(body)).want(t, http.StatusCreated)
		w.srv.opts.Prepare = func(context.Context, string) (string, string, error) {
			return "", "", journal.Errorf(journal.Unprocessable, "It is gone.").Typed("workspace-not-found")
		}
		again := w.do(t, post, "/api/v1/sessions", as(w.alice), key("s"), sendsJSON(body))
		if got := again.want(t, http.StatusCreated); got["id"] != made["id"] || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %v, want the first answer again", got)
		}
		w.do(t, post, "/api/v1/sessions", as(w.alice), key("t"), sendsJSON(body)).wantProblem(t, http.StatusUnprocessableEntity, "workspace-not-found")
	})
}

func TestReceipts(t *testing.T) {
	// proves ADM-9
	onEach(t, func(t *testing.T, w *world) {
		const plain = "deploy/2026#x%?"
		k := url.PathEscape(plain)
		w.do(t, get, "/api/v1/receipts/"+k, as(w.alice)).wantProblem(t, http.StatusNotFound, "no-such-key")
		id := w.session(t, w.alice)
		sent := w.do(t, post, "/api/v1/sessions/"+id+"/prompts", as(w.alice), key(plain), sendsJSON(`{"text":"hi","delivery":"steer"}`)).want(t, http.StatusAccepted)
		made := w.do(t, post, "/api/v1/sessions", as(w.alice), key(plain), sendsJSON(`{"workspace":"/srv/x","agent":"runbook"}`)).want(t, http.StatusCreated)

		items := w.do(t, get, "/api/v1/receipts/"+k, as(w.alice)).want(t, http.StatusOK)["items"].([]any)
		if len(items) != 2 {
			t.Fatalf("got %v, want both operations", items)
		}
		p, s := items[0].(map[string]any), items[1].(map[string]any)
		if p["operation"] != "prompts.create" || p["state"] != "admitted" || !reflect.DeepEqual(p["receipt"], any(sent)) {
			t.Errorf("got %v\nwant the receipt %v", p, sent)
		}
		if r := s["receipt"].(map[string]any); s["operation"] != "sessions.create" || s["state"] != "idle" || r["session_id"] != made["id"] {
			t.Errorf("got %v\nwant that of %v", s, made["id"])
		}
		w.do(t, del, "/api/v1/prompts/"+sent["id"].(string), as(w.alice)).want(t, http.StatusOK)
		items = w.do(t, get, "/api/v1/receipts/"+k, as(w.alice)).want(t, http.StatusOK)["items"].([]any)
		if got := items[0].(map[string]any)["state"]; got != "withdrawn" {
			t.Errorf("got the state %v, want withdrawn", got)
		}
		w.do(t, get, "/api/v1/receipts/"+k, as(w.mallory)).wantProblem(t, http.StatusNotFound, "no-such-key")
	})
}

func TestUnavailable(t *testing.T) {
	// proves ADM-9
	onEach(t, func(t *testing.T, w *world) {
		id := w.session(t, w.alice)
		path := "/api/v1/sessions/" + id + "/prompts"
		send := func() answer { return w.do(t, post, path, as(w.alice), key("k"), sendsJSON(`{"text":"hi"}`)) }
		raw := w.db.SQL(t)
		lock, err := raw.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		exec := func(statements ...string) {
			for _, q := range statements {
				if _, err := lock.ExecContext(t.Context(), q); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
			}
		}
		if w.db.Name == "sqlite" {
			exec("BEGIN IMMEDIATE")
		} else {
			exec("BEGIN", "SELECT * FROM session FOR UPDATE", "LOCK TABLE meta IN EXCLUSIVE MODE")
		}
		a := send()
		if said := a.wantProblem(t, http.StatusServiceUnavailable, "journal-unavailable")["detail"]; !strings.Contains(fmt.Sprint(said), "again with the same key") {
			t.Errorf("it says %q", said)
		}
		keyless := w.do(t, post, "/api/v1/sessions/"+id+"/archive", as(w.alice)).wantProblem(t, http.StatusServiceUnavailable, "journal-unavailable")
		if said := fmt.Sprint(keyless["detail"]); strings.Contains(said, "key") || !strings.Contains(said, "again") {
			t.Errorf("without a key it says %q", said)
		}
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		w.do(t, get, "/api/v1/sessions/"+id, as(w.alice)).want(t, http.StatusOK) // reading goes on
		w.do(t, get, "/readyz").want(t, http.StatusServiceUnavailable)           // but no work may come
		exec("ROLLBACK")
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		w.do(t, get, "/readyz").want(t, http.StatusOK)
		if r := send().want(t, http.StatusAccepted); r["replayed"] != false {
			t.Errorf("got %v: the refused one had been recorded", r)
		}
		if n := storetest.CountKind(storetest.Events(t, w.store, id), journal.KindPromptAdmitted); n != 1 {
			t.Errorf("got %d events, want 1", n)
		}
	})
}
