package handlers

// pageRoutes are the routes for people. Pages take a sign-in by cookie only.
func (s *Server) pageRoutes() []route {
	return []route{}
}
