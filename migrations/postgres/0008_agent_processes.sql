-- +goose Up
-- The processes of agents that speak ACP, one of a session at a time: how far what
-- they write has been read, and what is written to them. These are facts of a
-- machine, as claims are: no projection.
CREATE TABLE agent_process (
    id              TEXT PRIMARY KEY,
    session_id      TEXT NOT NULL REFERENCES session (id),
    state_folder_id TEXT NOT NULL,
    read_to         BIGINT NOT NULL DEFAULT 0, -- whole frames of its spool
    skip            BIGINT NOT NULL DEFAULT 0, -- bytes of its standard output that are read behind that, up to the end of a line
    sent            BIGINT NOT NULL DEFAULT 0, -- the last frame of its standard input
    used_at         BIGINT NOT NULL
);
CREATE INDEX agent_process_session ON agent_process (session_id);
CREATE INDEX agent_process_folder ON agent_process (state_folder_id, id);

-- What an agent is told, committed with the fact that causes it and kept until its
-- shim has it on the disk: whoever doesn't know gives it again, under its number.
CREATE TABLE agent_frame (
    process_id TEXT NOT NULL REFERENCES agent_process (id) ON DELETE CASCADE,
    n          BIGINT NOT NULL,
    data       BYTEA NOT NULL,
    PRIMARY KEY (process_id, n)
);

-- What an agent asked and has no answer to: a request of its protocol, for one of
-- its calls. It goes with the frame that answers it.
CREATE TABLE agent_ask (
    process_id TEXT NOT NULL REFERENCES agent_process (id) ON DELETE CASCADE,
    n          BIGINT NOT NULL, -- in the order of arrival
    call_id    TEXT NOT NULL,
    request    TEXT NOT NULL, -- as the agent wrote it, cut to what its answer needs
    PRIMARY KEY (process_id, n)
);
