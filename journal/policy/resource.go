package policy

// Resource is one thing that a call would touch.
//
// A tool other than the shell fills Permission and Value; the other members
// are set by ShellResources and FileResources. Resources are comparable.
type Resource struct {
	Permission string
	Value      string // what patterns are matched against
	Opaque     bool   // always asked, whatever the rules say, never remembered
	AlwaysAsk  bool   // floor: always asked though not opaque (sudo, /etc, …)

	// Unproven: a preset's allow doesn't count; the session's own rules do.
	Unproven bool
	// Neutral: changes nothing that isn't judged elsewhere. A neutral shell
	// part (cd sub, X=1) is judged only if the whole call is neutral; any
	// other neutral resource only by the session's own deny and ask rules.
	Neutral bool
	// Also is a second reading of a shell command (without assignments in
	// front, the folder of the program, git's global options), or of a host
	// with a port (the host), by which a deny or ask rule catches it; an allow
	// rule never does. "" if there is none.
	Also string
	// Could is a wildcard of what the command may become when the shell has
	// expanded it, "" if Value is exact. A later deny or ask rule that could
	// match it makes it asked. Of a file it is what it names if it is a pattern.
	Could string
	// Folder: it is a folder that is changed with all in it. What rules say of a file
	// below it counts for it.
	Folder bool
	// Names are those of what lies in the folder, from it on, each ended by a NUL; Partly:
	// there is more than they say.
	Names  string
	Partly bool
	// Why says in plain words why it is opaque, always asked or unproven.
	Why string
}

// FileResources returns the resource of reading or editing one file:
// permission is PermissionRead or PermissionEdit, name a path that is relative
// to the workspace or absolute, best with links resolved. Inside the workspace
// it is that permission on the relative path; outside it is external_directory
// on the file's folder, and the permission itself on the absolute path as a
// neutral resource. A path that can't be told is always asked.
func FileResources(permission, name, workspace, home string) []Resource {
	root := cleanRoot(workspace)
	p := locate(name, root, root, home)
	if p.unsure != "" {
		return []Resource{{Permission: permission, Value: name, Opaque: true, Why: p.unsure}}
	}
	return p.resources(permission, home)
}
