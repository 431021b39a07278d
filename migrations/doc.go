// Package migrations carries the schema: two trees of SQL files with the same
// numbers, one for SQLite and one for Postgres, embedded in the binary.
//
// They only go forward, are applied in order, and are never edited once merged:
// a change is a new pair. Both trees define the same tables and columns; what
// differs is how a database keeps them (WITHOUT ROWID, fillfactor, the type of
// bytes). docs/persistence.md draws the schema and says which tables are journal,
// which are projections, and which are neither.
package migrations
