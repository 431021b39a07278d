// Package migrations carries the schema: two trees with the same numbers, one
// for SQLite and one for Postgres. They only go forward and are never edited
// once merged.
package migrations

import "embed"

// FS holds both trees, in the folders sqlite and postgres.
//
//go:embed sqlite/*.sql postgres/*.sql
var FS embed.FS
