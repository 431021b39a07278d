// Package e2e tests the built binary from outside: over HTTP, by its command
// line, by signals, and by looking at its database.
//
// # How a test is made
//
//	each(t, func(t *testing.T, w *world) {
//		s := w.serve()                      // a server of the real binary, ready
//		id := s.mission(steps("echo hi"))   // over the API, with the world's token
//		s.untilState(id, "ready")
//		s.kill9()
//		s.restart()                         // same state folder, database, address
//	})
//
// Agents that speak ACP are e2e/fakeagent, each with a script and a log:
//
//	f := w.fake("fake", `{"prompts": [{"steps": [{"say": "hi"}]}]}`)
//	s := w.serve(agents(f))
//	id := s.mission("Say hi", f.by)
//	f.wantPrompts("Say hi")
//
// Real agents, from npm (e2e/agents), are tested with the tag agents (make
// test-agents): they ask a model of the test (e2e/model), and the prompt says what it
// answers. Each test has a world for each agent; what its servers start bears a mark in
// its environment, by which what is left running is found.
//
// A world is one database (SQLite and Postgres, as subtests of those names) with
// one user, one token and one workspace. What a server has acknowledged is
// remembered by its client; when the test ends every server is killed and the
// journal is held against the invariants I1 to I9 (invariants_test.go).
//
// Nothing waits on time. Tests wait for events (a long poll), for lines that a
// process prints, and for lines in pipes; commands wait at gates, which are named
// pipes in the workspace. patience bounds each wait and is met only by a test
// that fails. What the browser's tests need, too, is in e2e/rig.
package e2e
