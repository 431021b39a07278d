-- +goose Up
-- Which execution reads a spool: a call whose execution was lost, and that waits to
-- be run again, is not one that runs. '' is of an earlier build, or of none.
ALTER TABLE spool ADD COLUMN execution_id TEXT NOT NULL DEFAULT '';
