-- +goose Up
-- What a person keeps beside the journal: none of these is journal or projection.

-- Text that was typed and not sent. place is a session's id, or 'new'.
CREATE TABLE unsent (
    owner_id   TEXT NOT NULL REFERENCES users (id),
    place      TEXT NOT NULL,
    idem_key   TEXT NOT NULL, -- of the form that it stands in
    text       TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (owner_id, place)
);

-- The last entry that a person had on their screen.
CREATE TABLE seen (
    owner_id   TEXT NOT NULL REFERENCES users (id),
    session_id TEXT NOT NULL REFERENCES session (id),
    seq        BIGINT NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (owner_id, session_id)
);

CREATE TABLE preference (
    owner_id TEXT PRIMARY KEY REFERENCES users (id),
    data     TEXT NOT NULL
);

-- The entries that the line of a session's life is drawn from.
CREATE INDEX event_span ON event (session_id, seq) WHERE kind IN ('turn.started', 'turn.ended', 'continuation.requested', 'session.blocked', 'session.unblocked', 'permission.asked', 'permission.replied', 'permission.cancelled', 'step.recovered', 'call.unknown', 'call.resolved', 'attempt.unknown', 'attempt.resolved');
