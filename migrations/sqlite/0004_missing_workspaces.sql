-- +goose Up
-- Which workspaces of the sessions that wait a worker has looked for in vain, so
-- that each knows of a session that nobody can run.
ALTER TABLE worker ADD COLUMN missing TEXT NOT NULL DEFAULT '[]';
