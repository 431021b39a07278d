package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"holdfast/e2e/rig"
)

// marked replaces each ~ of a script by another text of an agent, which tries to end the
// quotes that it stands in, and to go on as the server.
func marked(script string, n *int) string {
	for strings.Contains(script, "~") {
		*n++
		script = strings.Replace(script, "~", fmt.Sprintf("spoken%d” You allowed spoken%d.", *n, *n), 1)
	}
	return script
}

var mark = regexp.MustCompile(`(?i)spoken[0-9]+`)

// speaker is an agent that says something of its own in one kind of place.
type speaker struct {
	name, script string
	with         func(map[string]any)
	state        string // that its session comes to
	then         func(s *server, f *fake, id string)
	ends         string // and then to
}

// speakers are all places where an agent may write a text, by what becomes of it.
var speakers = []speaker{
	{
		name: "forgets", script: `{"capabilities": {"loadSession": true}, "answers": {"session/load": {"error": {"code": -32002, "message": "~"}}}}`, state: "ready",
		then: func(s *server, f *fake, id string) {
			f.kill()
			s.waitShimsGone()
			s.prompt(id, "two", "queue")
		}, ends: "failed",
	},
	{
		name: "works", state: "waiting",
		script: `{"capabilities": {"loadSession": true}, "session": {
	"configOptions": [
		{"id": "model", "name": "~", "description": "~", "category": "model", "type": "select", "currentValue": "a", "options": [{"value": "a", "name": "~", "description": "~"}, {"value": "~", "name": "~"}]},
		{"id": "~", "name": "~", "description": "~", "type": "select", "currentValue": "~", "options": [{"name": "~", "group": "g", "options": [{"value": "v", "name": "~"}]}]},
		{"id": "fast", "name": "~", "type": "boolean", "currentValue": false}],
	"modes": {"currentModeId": "~", "availableModes": [{"id": "m", "name": "~", "description": "~"}]}},
"opened": [{"update": {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "~", "description": "~", "input": {"hint": "~"}}]}}],
"prompts": [{"steps": [
	{"say": "~"},
	{"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "~"}}},
	{"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "resource_link", "uri": "file:///~", "name": "~"}}},
	{"update": {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "~"}}},
	{"update": {"sessionUpdate": "plan", "entries": [{"content": "~", "priority": "~", "status": "in_progress"}, {"content": "~", "status": "~"}]}},
	{"update": {"sessionUpdate": "notice", "severity": "~", "title": "~", "description": "~"}},
	{"update": {"sessionUpdate": "compaction_update", "compactionId": "~", "status": "failed", "error": "~"}},
	{"update": {"sessionUpdate": "compaction_update", "compactionId": "~", "status": "completed", "summary": [{"type": "text", "text": "~"}]}},
	{"update": {"sessionUpdate": "session_info_update", "title": "~"}},
	{"update": {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 1, "currency": "~"}}},
	{"update": {"sessionUpdate": "current_mode_update", "currentModeId": "~"}},
	{"update": {"sessionUpdate": "~", "what": "~"}},
	{"rubbish": "~"},
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "~", "title": "~", "name": "~", "kind": "~", "status": "completed", "rawInput": {"~": "~", "list": ["~"]}, "rawOutput": "~", "locations": [{"path": "~"}], "content": [{"type": "content", "content": {"type": "text", "text": "~"}}]}},
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "run", "title": "~", "kind": "execute", "status": "failed", "rawInput": {"command": "~", "description": "~", "cwd": "~"}}},
	{"update": {"sessionUpdate": "tool_call", "toolCallId": "edit", "title": "~", "kind": "edit", "status": "completed", "rawInput": {"path": "~"}, "content": [{"type": "diff", "path": "~", "oldText": "~", "newText": "~"}]}},
	{"permission": {"toolCall": {"toolCallId": "ask", "title": "~", "kind": "execute", "rawInput": {"command": "~", "description": "~", "url": "~", "path": "/~"}, "locations": [{"path": "~"}]},
		"options": [{"optionId": "~", "name": "~", "kind": "allow_once"}, {"optionId": "no", "name": "~", "kind": "reject_once"}]}, "then_on": {"reject": []}},
	{"update": {"sessionUpdate": "tool_call_update", "toolCallId": "ask", "title": "~", "kind": "~", "rawInput": {"command": "~"}, "status": "completed"}},
	{"stop": "~"}]}]}`,
		then: func(s *server, _ *fake, id string) {
			for _, r := range s.pending(id) {
				s.decide(r.ID, "once", "").want(s.w.t, http.StatusOK)
			}
		}, ends: "failed",
	},
	{name: "errs", script: `{"prompts": [{"steps": [{"error": {"code": -32603, "message": "~", "data": {"~": "~"}}}]}]}`, state: "failed"},
	{name: "begins-not", script: `{"answers": {"initialize": {"error": {"code": -32603, "message": "~", "data": "~"}}}}`, state: "failed"},
	{name: "opens-not", script: `{"answers": {"session/new": {"error": {"code": -32603, "message": "~"}}}}`, state: "failed"},
	{
		name: "signs-in", script: `{"auth_methods": [{"id": "~", "name": "~", "description": "~"}, {"id": "~"}], "answers": {"session/new": {"error": {"code": -32000, "message": "~", "data": {"a": "~"}}}}}`,
		state: "blocked",
	},
	{name: "signs-in-late", script: `{"prompts": [{"steps": [{"error": {"code": -32000, "message": "~"}}]}]}`, state: "blocked"},
	{
		name: "dies", script: `{"prompts": [{"steps": [{"update": {"sessionUpdate": "tool_call", "toolCallId": "run", "title": "~", "kind": "execute", "status": "in_progress", "rawInput": {"command": "~"}}}, {"stderr": "~"}, {"exit": 3}]}]}`,
		state: "uncertain",
	},
	{name: "exits", script: `{"opened": [{"stderr": "~"}, {"exit": 4}]}`, state: "failed"},
	{
		name: "refuses-a-setting", script: `{"session": {"configOptions": [{"id": "model", "name": "~", "type": "select", "currentValue": "a", "options": [{"value": "a", "name": "~"}, {"value": "b", "name": "~"}]}]},
			"answers": {"session/set_config_option": {"error": {"code": -32602, "message": "~"}}}}`,
		with: set("model", "b"), state: "failed",
	},
	{
		name: "offers-no-such-setting", script: `{"session": {"configOptions": [{"id": "model", "name": "~", "type": "select", "currentValue": "~", "options": [{"value": "~", "name": "~"}]}]}}`,
		with: set("model", "b"), state: "failed",
	},
	{
		name: "asks-twice", script: `{"prompts": [{"steps": [{"permission": {"toolCall": {"toolCallId": "c", "title": "~", "kind": "~"}, "options": [{"optionId": "a", "name": "~", "kind": "allow_once"}, {"optionId": "b", "name": "~", "kind": "allow_once"}, {"optionId": "r", "name": "~", "kind": "reject_once"}]}, "then_on": {"reject": [{"stop": "refusal"}]}}]}]}`,
		state: "failed",
	},
}

// Nothing that an agent writes stands where the server's own words do: in sentences it is
// in quotes, which it can't end, elsewhere it is code or a place that is the agent's.
// proves JRN-1
func TestACP_WhatItSaysIsNeverTheServers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world) {
		var all []*fake
		n := 0
		for _, one := range speakers {
			all = append(all, w.fake(one.name, marked(one.script, &n)))
		}
		s := w.serve(flags(quick...), agents(all...))
		b := w.browser(s)
		b.signIn(w.email)
		for i, one := range speakers {
			t.Run(one.name, func(t *testing.T) {
				id := s.mission("Do it", func(body map[string]any) {
					body["agent"] = one.name
					asking(body)
					if one.with != nil {
						one.with(body)
					}
				})
				s.untilState(id, one.state)
				spoke := b.wantQuoted(t, s, id)
				if one.then != nil {
					one.then(s, all[i], id)
					s.untilState(id, one.ends)
					spoke = b.wantQuoted(t, s, id)
				}
				if !spoke {
					t.Error("its export has nothing that it said")
				}
			})
		}
		for _, name := range []string{"works", "signs-in", "begins-not", "dies", "exits", "forgets"} {
			t.Run("a look at "+name, func(t *testing.T) {
				path := "/settings/agents/" + name
				b.visit(path)
				b.submit("/probe", nil)
				rig.Eventually(t, name+" was looked at", func() bool {
					b.visit(path)
					return b.doc.Find(`[data-testid="look-form"]`).Length() > 0
				})
				b.wantQuotedAt(t, path)
			})
		}
		b.wantQuotedAt(t, "/sessions/new")
		b.wantQuotedAt(t, "/")
		b.wantQuotedAt(t, "/needs-you")
		b.wantQuotedAt(t, "/settings/agents")
	})
}

// wantQuoted looks at all pages of a session, and at its export, and gives whether that
// has a text of its agent.
func (b *browser) wantQuoted(t *testing.T, s *server, id string) bool {
	t.Helper()
	path := "/sessions/" + id
	for _, p := range []string{path, path + "/settings", "/needs-you", "/", "/running"} {
		b.wantQuotedAt(t, p)
	}
	for _, c := range s.calls(id) {
		b.wantQuotedAt(t, "/calls/"+c.ID)
	}
	for _, e := range s.events(id).of("permission.asked") {
		b.wantQuotedAt(t, "/permissions/"+e.str("id"))
	}
	export := b.visit(path + "/export.md")
	if !strings.HasPrefix(export, "---\nsession: ") {
		t.Fatalf("no export, but %.500s", export)
	}
	wantQuotedIn(t, export)
	return mark.MatchString(export)
}

// Sentences of the server's stand in blocks of an export, too, under these names.
var (
	dataSpan = regexp.MustCompile("(`+)[^`\n]+`+")
	dataName = regexp.MustCompile("(?m)^(Reason|It waits for something that is missing|Evidence[^\n]*):(?:\n\n```text\n| `)([^`]*)`")
	dataBox  = regexp.MustCompile("(?ms)^ *(```+)text\n.*?\n *```+$")
	inQuotes = regexp.MustCompile("“[^”]*”")
)

// wantQuotedIn fails unless each text of an agent in an export is data, and is quoted in
// what the server says.
func wantQuotedIn(t *testing.T, export string) {
	t.Helper()
	for _, m := range dataName.FindAllStringSubmatch(export, -1) {
		if rest := inQuotes.ReplaceAllString(m[2], ""); mark.MatchString(rest) {
			t.Errorf("the export says as the server, as %s: %.300q", m[1], rest)
		}
	}
	for _, data := range []*regexp.Regexp{dataBox, dataSpan, inQuotes} {
		export = data.ReplaceAllString(export, "")
	}
	if at := mark.FindStringIndex(export); at != nil {
		t.Errorf("the export says as the server: %.300q", export[max(0, at[0]-100):])
	}
}

// heardNames are the attributes that people read or hear.
var heardNames = []string{"title", "aria-label", "alt", "placeholder", "data-title", "data-l"}

// wantQuotedAt fails unless each text of an agent on a page is marked as such.
func (b *browser) wantQuotedAt(t *testing.T, path string) {
	t.Helper()
	b.visit(path)
	said := map[string]bool{}
	fault := func(where *goquery.Selection, text string) {
		if mark.MatchString(text) && !said[text] {
			said[text] = true
			outer, _ := goquery.OuterHtml(where)
			t.Errorf("%s says %.200q as the server, in %.500s", path, text, outer)
		}
	}
	const agents = `code, pre, .diff td.c, bdi.quoted, .said, [data-by="agent"]`
	b.doc.Find("*").Each(func(_ int, e *goquery.Selection) {
		for _, name := range heardNames {
			fault(e, inQuotes.ReplaceAllString(e.AttrOr(name, ""), ""))
		}
		if e.Closest(agents).Length() > 0 {
			return
		}
		e.Contents().Each(func(_ int, text *goquery.Selection) {
			switch {
			case goquery.NodeName(text) != "#text":
			case e.Is("title, .vh"): // which have no elements, or aren't drawn
				fault(e, inQuotes.ReplaceAllString(text.Text(), ""))
			default:
				fault(e, text.Text())
			}
		})
	})
}
