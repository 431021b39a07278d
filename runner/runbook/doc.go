// Package runbook is the built-in agent, which needs no model: a mission is
// Markdown, and each fenced block marked sh or bash is one step, run in the
// workspace in order. It is useful by itself for operations, and it is the
// deterministic agent of tests.
//
// The agent holds no state. It runs from the top after every park, restart and
// resolution; a call's key is its position (prompt/block), and asking for a key
// that has an outcome answers it and runs nothing. A step that did not happen,
// by a person's word, is proposed again under the key …#2.
package runbook
