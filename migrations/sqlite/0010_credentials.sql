-- +goose Up
-- What agents get in their environment, sealed with a key that isn't here (OWN-3):
-- its id is in meta, as credential_key. The id names one value: another value has
-- another id. One that was replaced or deleted stays, sealed, until no process can
-- have it any more: it is masked as long.
CREATE TABLE credential (
    id         TEXT PRIMARY KEY,
    owner_id   TEXT NOT NULL REFERENCES users (id),
    agent      TEXT NOT NULL, -- '': every one
    name       TEXT NOT NULL, -- of the variable
    sealed     BLOB NOT NULL,
    version    BIGINT NOT NULL, -- counts the values under this name
    created_at BIGINT NOT NULL, -- of the first of them
    updated_at BIGINT NOT NULL, -- of this one
    used_at    BIGINT, -- when a process was last started with this one or an earlier one
    retired_at BIGINT
) WITHOUT ROWID;
CREATE UNIQUE INDEX credential_name ON credential (owner_id, agent, name) WHERE retired_at IS NULL;
CREATE INDEX credential_retired ON credential (retired_at) WHERE retired_at IS NOT NULL;
