// Command fakeagent is an agent that speaks ACP on stdin and stdout and does what a
// script says, well or badly, so that tests can have each kind of agent.
//
// # Environment
//
//	FAKEAGENT_SCRIPT  the script's file; without one it repeats what it is told
//	FAKEAGENT_LOG     a file to append to: what it received and did, see entry; each
//	                  line is on the disk before the agent goes on
//	FAKEAGENT_STATE   a file that keeps the sessions from one process to the next;
//	                  without one it forgets them
//
// # Script
//
// A JSON object; each member may be missing.
//
//	capabilities      agentCapabilities of the answer to initialize; by default load,
//	                  resume and close. What they don't offer is refused, -32601
//	auth_methods      authMethods of that answer
//	protocol_version  of that answer: 1
//	session           members of the answers to session/new, load and resume: modes,
//	                  configOptions, models. What is set of them a process keeps;
//	                  a value that isn't among the choices is refused, -32602
//	answers           method → {"result": …} or {"error": {…}} or {"hang": true}, or
//	                  {"crash": true}: kills the agent, signal 9:
//	                  answers that method so, whatever else is said here; or
//	                  {"after_file": PATH}: as else, but not before that exists
//	needs_env         a variable: without it no session is opened, but answered -32000
//	opened            steps after session/new, load or resume was answered
//	prompts           a list of {"match", "times", "on_cancel", "steps"}. A prompt gets
//	                  the first of them whose match is a part of its text, and that was
//	                  taken fewer than times times (counted in the state); both may be
//	                  missing. No such: the turn ends at once
//	on_cancel         what session/cancel does, unless the prompt's entry says:
//	                    "answer"     ends the steps and answers cancelled (the default)
//	                    "complete"   the same, but reports open tool calls completed before
//	                    "ignore"     nothing
//	                    {"after_file": PATH}  ends the steps, and answers when that exists
//	on_eof            "exit" (the default): end what runs, exit 0; or "ignore"
//
// Prompts are worked off one after the other. A turn whose steps are over is answered
// end_turn, if none of them has answered; steps may follow that answer. A command is
// its own session and process group: killing the agent doesn't end it.
//
// # Steps
//
// An object with one of these words, and what stands below it. In texts {{prompt}} is
// the prompt's text, {{session}} its session, {{turn}} counts the turns of the process
// and {{n}} those of the innermost repeat, both from 1. {{env.NAME}} is a variable of
// the agent's environment, and {{escaped.NAME}} the same with each byte as \u00XX.
//
//	update: {…}           session/update with this update
//	say: TEXT             a chunk of the agent's message
//	spell: TEXT           a chunk for each of its characters
//	repeat: N             does steps N times
//	  steps: […]
//	permission: {…}       asks, and waits. sessionId is added, and so are toolCall and
//	                      options if they are missing: once, always, reject
//	  then_on: {"allow": […], "reject": […], "cancelled": […]}
//	                      steps by the answer. With cancelled, session/cancel waits for
//	                      the answer, else it ends the turn without it
//	  meanwhile: […]      steps between asking and waiting
//	run: SCRIPT           runs it by sh, as a tool call whose updates hold its output so far
//	  tool: ID            the call's id, which has been reported already
//	sleep_ms: N           waits
//	wait_file: PATH       waits until there is such a file
//	touch: PATH           makes it
//	crash: true           kills the agent, signal 9
//	exit: CODE            ends it
//	stderr: TEXT          writes a line there
//	rubbish: TEXT         writes a line that isn't ACP
//	big: BYTES            a chunk whose line has that many
//	burst: N              N chunks in one write
//	dup_id: true          the next request has the id of the last one
//	reorder: […]          steps that don't wait, whose lines come out last first
//	unknown_update: true  an update that no protocol knows
//	unknown_request: METHOD  such a request, and waits for its answer
//	hang: true            never goes on; session/cancel ends it
//	stop: REASON          answers the prompt
//	  usage: {…}
//	error: {"code", "message", "data"}  answers it so
package main
