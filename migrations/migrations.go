package migrations

import "embed"

// FS holds both trees, in the folders sqlite and postgres.
//
//go:embed sqlite/*.sql postgres/*.sql
var FS embed.FS
