package handlers

// pageRoutes are the routes for people. Pages take a sign-in by cookie only.
func (s *Server) pageRoutes() []route {
	s.renderError = s.showFailure
	return append(s.credentialRoutes(), []route{
		{get, "/static/:name", public, read, showAsset},
		{get, "/setup", public, read, s.showSetup},
		{post, "/setup", public, read, s.createFirstUser},
		{get, "/login", public, read, s.showLogin},
		{post, "/login", public, read, s.createLogin},
		{post, "/logout", owner, read, s.createLogout},
		{get, "/help", public, read, s.showHelp},

		{get, "/", owner, read, s.listSessions},
		{get, "/sessions/new", owner, read, s.newSession},
		{post, "/sessions/new/unsent", owner, prompt, s.submitUnsentMission},
		{get, "/sessions", owner, read, toSessions},
		{post, "/sessions", owner, prompt, s.submitSession},
		{get, "/sessions/:id", owner, read, s.showSession},
		{get, "/sessions/:id/stream", owner, read, s.showStream},
		{get, "/sessions/:id/stop", owner, read, s.showStop},
		{get, "/sessions/:id/export.json", owner, read, s.apiExport},
		{get, "/sessions/:id/export.md", owner, read, s.exportMarkdown},
		{post, "/sessions/:id/prompts", owner, prompt, s.submitPrompt},
		{post, "/sessions/:id/interruption", owner, prompt, s.submitInterruption},
		{post, "/sessions/:id/continuation", owner, prompt, s.submitContinuation},
		{get, "/sessions/:id/settings", owner, read, s.showAgentSettings},
		{post, "/sessions/:id/settings", owner, prompt, s.submitAgentSettings},
		{post, "/sessions/:id/archive", owner, prompt, s.submitArchive},
		{post, "/sessions/:id/seen", owner, read, s.submitSeen},
		{post, "/sessions/:id/unsent", owner, prompt, s.submitUnsent},
		{post, "/prompts/:id/withdrawal", owner, prompt, s.submitWithdrawal},

		{get, "/running", owner, read, s.showRunning},
		{get, "/pulse", owner, read, s.showPulse},
		{get, "/settings", owner, read, s.showSettings},
		{post, "/settings", owner, all, s.submitSettings},
		{get, "/settings/agents", owner, read, s.showAgents},
		{get, "/settings/agents/:name", owner, read, s.showAgent},
		{post, "/settings/agents/:name/probe", owner, all, s.submitLook},

		{get, "/needs-you", owner, read, s.showNeedsYou},
		{get, "/permissions/:id", owner, read, s.showRequest},
		{post, "/permissions/:id/decision", owner, all, s.submitDecision},
		{post, "/calls/:id/resolution", owner, all, s.submitCallResolution},
		{post, "/attempts/:id/resolution", owner, all, s.submitAttemptResolution},
		{get, "/calls/:id", owner, read, s.showCall},
		{get, "/calls/:id/output", owner, read, s.showOutput},
	}...)
}
