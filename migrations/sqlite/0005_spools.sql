-- +goose Up
-- How far the output of a command that outlives its server has been read. These
-- are facts of a machine, as claims are: no projection.
CREATE TABLE spool (
    call_id         TEXT PRIMARY KEY,
    n               BIGINT NOT NULL, -- the dispatch that it is of
    session_id      TEXT NOT NULL REFERENCES session (id),
    state_folder_id TEXT NOT NULL,
    read_to         BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX spool_folder ON spool (state_folder_id, call_id);
CREATE INDEX spool_session ON spool (session_id);

-- Since when a call whose execution was lost is followed again, and by the workers of which folder.
ALTER TABLE call ADD COLUMN adopted_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE call ADD COLUMN adopted_by TEXT NOT NULL DEFAULT '';
