-- +goose Up
-- What an agent offered to be set when it last opened a new session of a person:
-- no journal and no projection, but what the form for the next session shows. It is
-- a person's own, since their credentials may decide which models there are.
CREATE TABLE agent_offers (
    owner_id TEXT NOT NULL REFERENCES users (id),
    agent    TEXT NOT NULL,
    version  TEXT NOT NULL,
    options  TEXT NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (owner_id, agent)
) WITHOUT ROWID;
