package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	holdfast "holdfast/journal"
)

// step is one of an agent's script.
type step = map[string]any

// updates is a step that reports something.
func updates(kind string, members ...any) step {
	u := step{"sessionUpdate": kind}
	for i := 0; i < len(members); i += 2 {
		u[members[i].(string)] = members[i+1]
	}
	return step{"update": u}
}

// shows is the content of a call that is one text.
func shows(text string) []any {
	return []any{step{"type": "content", "content": step{"type": "text", "text": text}}}
}

// script makes one of the steps of its only prompt.
func script(t *testing.T, steps []step) string {
	t.Helper()
	text, err := holdfast.Encode(step{"prompts": []any{step{"steps": steps}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// An agent tells a value piece by piece, wherever it tells something anew while it grows, and
// stops before the last character. No more than the first characters of it stand anywhere,
// while the agent works and after a restart.
//
// proves JRN-8 OWN-3
func TestACP_ASecretThatGrowsNeverShows(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		const key = "sk-ant-0123456789-abcdef"
		var steps []step
		for n := 1; n < len(key); n++ {
			cut := key[:n]
			steps = append(steps,
				updates("tool_call_update", "toolCallId", "t1", "title", "Run `echo "+cut+"`", "kind", "execute", "content", shows("shows "+cut),
					"locations", []any{step{"path": "/tmp/" + cut}}, "rawInput", step{"command": "echo " + cut, "list": []string{cut}}),
				updates("tool_call_update", "toolCallId", "t2", "title", "edit", "kind", "edit", "content", []any{step{"type": "diff", "path": "f", "oldText": cut, "newText": "x\n" + cut + "\n"}}),
				updates("plan", "entries", []any{step{"content": "plan " + cut, "priority": "high", "status": "pending"}}),
				updates("notice", "title", "notice "+cut, "description", "notes "+cut),
				updates("available_commands_update", "availableCommands", []any{step{"name": "go", "description": "does " + cut}}),
				updates("config_option_update", "configOptions", []any{step{"id": "o", "name": "option " + cut, "type": "select", "currentValue": "a", "options": []any{step{"value": "a", "name": cut}}}}),
				updates("weird", "says", "x "+cut, "text", cut, "id", cut),
				updates("agent_message_chunk", "content", step{"type": "resource", "resource": step{"uri": "u", "text": "r " + cut}}),
				updates("compaction_update", "compactionId", fmt.Sprint("c", n), "status", "completed", "summary", []any{step{"type": "text", "text": "sum " + cut}}),
			)
		}
		for _, c := range key[:len(key)-1] {
			steps = append(steps, updates("compaction_summary_chunk", "compactionId", "c", "content", step{"type": "text", "text": string(c)}))
		}
		steps = append(steps, updates("tool_call_update", "toolCallId", "t1", "status", "in_progress"), step{"spell": "spelt " + key[:len(key)-1]})
		for n := 1; n < len(key); n++ {
			steps = append(steps, updates("tool_call_update", "toolCallId", "t1", "content", shows("```console\nout "+key[:n]+"\n```")))
		}
		steps = append(steps, updates("tool_call_update", "toolCallId", "t1", "status", "completed"))
		for n := 1; n < len(key); n++ {
			steps = append(steps, updates("tool_call_update", "toolCallId", "t3", "status", "in_progress", "content", shows("plain "+key[:n])))
		}
		steps = append(steps, updates("tool_call_update", "toolCallId", "t3", "status", "completed"),
			step{"permission": step{
				"toolCall": step{"toolCallId": "p1", "title": "use " + key[:len(key)-1], "kind": "execute", "content": shows("plan: " + key[:len(key)-1])},
				"options":  []any{step{"optionId": "a", "name": "Yes " + key[:len(key)-1], "kind": "allow_once"}, step{"optionId": "r", "name": "No", "kind": "reject_once"}},
			}})
		f := w.fake("fake", script(t, steps))
		s := w.serve(flags(quick...), agents(f))
		b := w.signedIn(s)
		b.store("MODEL_KEY", "fake", key)
		id := s.mission("Grow", f.by, asking)
		s.untilState(id, "waiting")
		s.kill9()
		s.restart()
		s.untilState(id, "waiting")
		shown := key[:8] // one more than may show
		for where, text := range w.everywhere(s, b, id) {
			w.wantHidden(where, text, shown)
		}
		if got := s.get("/api/v1/sessions/"+id+"/events").want(t, http.StatusOK); !strings.Contains(string(got.body), "echo [hidden]") {
			t.Error("the command isn't there: nothing was proved of it")
		}
		if card := b.visit("/permissions/" + s.pending(id)[0].ID); !strings.Contains(card, "use [hidden]") || !strings.Contains(card, "plan: [hidden]") {
			t.Errorf("what is asked doesn't say that something is hidden: %s", tail(card, 3000))
		}
		s.allow(id)
		s.untilQuiet(id, "uncertain") // it ends without a word on two calls
		for where, text := range w.everywhere(s, b, id) {
			w.wantHidden(where, text, shown)
		}
	})
}

// What an agent tells of a call reaches people, wherever it tells it: before it runs, in the
// request, in a form of the tool's own, or as something that isn't text.
//
// proves JRN-5 PER-1
func TestACP_WhatACallShowsIsKept(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		up := func(id, status string, members ...any) step {
			return updates("tool_call_update", append([]any{"toolCallId", id, "status", status}, members...)...)
		}
		block := func(members step) []any { return []any{step{"type": "content", "content": members}} }
		f := w.fake("fake", script(t, []step{
			updates("tool_call", "toolCallId", "c1", "title", "one", "kind", "search", "status", "pending", "content", shows("EARLY-1")), up("c1", "completed"),
			updates("tool_call", "toolCallId", "c2", "title", "two", "kind", "execute", "rawInput", step{"command": "ls"}, "content", shows("EARLY-2")), up("c2", "in_progress"), up("c2", "completed"),
			updates("tool_call", "toolCallId", "c3", "title", "three", "kind", "execute", "status", "in_progress"), up("c3", "completed", "rawOutput", step{"stdout": "RAW-1", "exitCode": 3}),
			updates("tool_call", "toolCallId", "c4", "title", "four", "kind", "read", "status", "in_progress"), up("c4", "completed", "content", append(append(append(append(
				shows("before"), block(step{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"})...), block(step{"type": "resource", "resource": step{"uri": "file:///x", "text": "RES-1"}})...),
				block(step{"type": "resource_link", "uri": "file:///LINK-1", "name": "n"})...), step{"type": "hologram", "x": "HOLO-1"}), "rawOutput", "said already"),
			updates("tool_call", "toolCallId", "c5", "title", "five", "kind", "execute", "status", "failed", "content", shows("FAILED-1")),
			updates("tool_call", "toolCallId", "c6", "title", "six", "kind", "execute", "status", "in_progress"), up("c6", "completed", "rawOutput", "RAW-2"),
			{
				"permission": step{"toolCall": step{"toolCallId": "c7", "title": "Ready to code?", "kind": "switch_mode", "content": shows("PLAN-1: delete prod, then deploy")}},
				"then_on":    step{"allow": []any{up("c7", "completed")}},
			},
			{
				"permission": step{"toolCall": step{"toolCallId": "c8", "title": "ls", "kind": "execute", "rawInput": step{"command": "ls"}}},
				"meanwhile":  []any{updates("tool_call_update", "toolCallId", "c8", "content", shows("REMARK-1"))},
				"then_on":    step{"allow": []any{up("c8", "completed")}},
			},
		}))
		s := w.serve(flags(quick...), agents(f))
		b := w.signedIn(s)
		id := s.mission("Show", f.by, asking)
		s.untilState(id, "waiting")
		s.kill9()
		s.restart()
		s.untilState(id, "waiting")
		request := s.pending(id)[0]
		for where, text := range map[string]string{
			"the card": b.visit("/permissions/" + request.ID), "the session's page": b.visit("/sessions/" + id), "the inbox": b.visit("/needs-you"),
			"the API": string(s.get("/api/v1/permissions?session="+id).want(t, http.StatusOK).body),
		} {
			if !strings.Contains(text, "PLAN-1: delete prod, then deploy") || !strings.Contains(text, "Ready to code?") {
				t.Errorf("%s shows not all of what is asked: %s", where, tail(text, 2000))
			}
		}
		s.allow(id)
		s.untilKind(id, "permission.replied", 1)
		s.untilKind(id, "permission.asked", 2)
		s.untilState(id, "waiting")
		s.allow(id)
		s.untilQuiet(id, "ready")
		j := s.events(id)
		if n := j.count("permission.asked"); n != 2 || j.at("agent.event", func(e event) bool { return strings.Contains(string(e.Data), "REMARK-1") }) < 0 {
			t.Errorf("%d times it is asked, or a remark is lost", n)
		}
		for i, want := range []string{
			"EARLY-1", "EARLY-2", `{"exitCode":3,"stdout":"RAW-1"}`,
			"before\n[image, image/png, 5 bytes]\n[resource: file:///x]\nRES-1\n[resource link: file:///LINK-1, n]\n" + `[content of an unknown kind: {"type":"hologram","x":"HOLO-1"}]` + "\n",
			"FAILED-1", "RAW-2", "PLAN-1: delete prod, then deploy",
		} {
			calls := s.calls(id)
			if i >= len(calls) {
				t.Fatalf("there are %d calls", len(calls))
			}
			if got := j.output(calls[i].ID); got != want {
				t.Errorf("call %d shows %q, want %q", i+1, got, want)
			}
		}
	})
}
