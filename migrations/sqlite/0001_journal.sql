-- +goose Up
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE users (
    id            TEXT PRIMARY KEY,
    email         TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL,
    disabled      BIGINT NOT NULL DEFAULT 0,
    created_at    BIGINT NOT NULL
) WITHOUT ROWID;

-- A link that signs somebody in once: the setup code of the first start has no user yet.
CREATE TABLE sign_in_link (
    hash       TEXT PRIMARY KEY,
    user_id    TEXT REFERENCES users (id),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at    BIGINT
) WITHOUT ROWID;

CREATE TABLE token (
    id         TEXT PRIMARY KEY,
    user_id    TEXT NOT NULL REFERENCES users (id),
    hash       TEXT NOT NULL UNIQUE,
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL CHECK (scope IN ('all', 'prompt', 'read')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    used_at    BIGINT,
    revoked_at BIGINT
) WITHOUT ROWID;

CREATE TABLE web_session (
    token      TEXT PRIMARY KEY,
    data       BLOB NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX web_session_expires ON web_session (expires_at);

CREATE TABLE worker (
    id              TEXT PRIMARY KEY,
    state_folder_id TEXT NOT NULL,
    host            TEXT NOT NULL,
    pid             BIGINT NOT NULL,
    version         TEXT NOT NULL,
    started_at      BIGINT NOT NULL,
    seen_at         BIGINT NOT NULL,
    places          BIGINT NOT NULL,
    running         BIGINT NOT NULL,
    draining        BIGINT NOT NULL,
    agents          TEXT NOT NULL
) WITHOUT ROWID;

-- next_seq is the last seq given out. execution_id is the claim's, or null: it
-- is what fences (LEA-4). state is the fold of the journal; the columns after
-- it repeat what queries look for.
CREATE TABLE session (
    id            TEXT PRIMARY KEY,
    owner_id      TEXT NOT NULL REFERENCES users (id),
    workspace_id  TEXT NOT NULL,
    preset        TEXT NOT NULL,
    rules         TEXT NOT NULL,
    policy        TEXT NOT NULL,
    rules_version BIGINT NOT NULL DEFAULT 1,
    next_seq      BIGINT NOT NULL DEFAULT 0,
    epoch         BIGINT NOT NULL DEFAULT 0,
    execution_id  TEXT,
    updated_at    BIGINT NOT NULL,
    state         TEXT NOT NULL,
    base          TEXT NOT NULL,
    needs         TEXT NOT NULL,
    interrupted   BIGINT NOT NULL DEFAULT 0,
    runnable_at   BIGINT,
    title         TEXT NOT NULL,
    title_folded  TEXT NOT NULL,
    agent         TEXT NOT NULL,
    workspace     TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_owner ON session (owner_id, id);
CREATE INDEX session_runnable ON session (runnable_at) WHERE runnable_at IS NOT NULL;

CREATE TABLE event (
    session_id   TEXT NOT NULL REFERENCES session (id),
    seq          BIGINT NOT NULL,
    id           TEXT NOT NULL,
    kind         TEXT NOT NULL,
    version      BIGINT NOT NULL,
    time         BIGINT NOT NULL,
    actor_type   TEXT NOT NULL,
    actor_id     TEXT,
    execution_id TEXT,
    data         TEXT NOT NULL,
    checksum     BIGINT NOT NULL DEFAULT 0, -- over the other columns, for verify
    PRIMARY KEY (session_id, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX event_id ON event (id);

-- Part of the journal: texts over 32 KiB.
CREATE TABLE blob (
    session_id TEXT NOT NULL REFERENCES session (id),
    sha256     TEXT NOT NULL,
    data       BLOB NOT NULL,
    PRIMARY KEY (session_id, sha256)
) WITHOUT ROWID;

CREATE TABLE receipt (
    owner_id       TEXT NOT NULL,
    operation      TEXT NOT NULL,
    idem_key       TEXT NOT NULL,
    session_id     TEXT NOT NULL REFERENCES session (id),
    payload_sha256 TEXT NOT NULL,
    subject_id     TEXT NOT NULL,
    seq            BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (owner_id, operation, idem_key)
) WITHOUT ROWID;
CREATE INDEX receipt_session ON receipt (session_id);

CREATE TABLE claim (
    session_id           TEXT PRIMARY KEY REFERENCES session (id),
    execution_id         TEXT NOT NULL UNIQUE,
    worker_id            TEXT NOT NULL,
    state_folder_id      TEXT NOT NULL,
    phase                TEXT NOT NULL CHECK (phase IN ('ready', 'safe', 'uncertain')),
    assistant_message_id TEXT,
    claimed_at           BIGINT NOT NULL,
    expires_at           BIGINT NOT NULL,
    lease_ms             BIGINT NOT NULL
) WITHOUT ROWID;

-- Projections: all below can be rebuilt from event and blob.
CREATE TABLE input (
    id           TEXT PRIMARY KEY,
    session_id   TEXT NOT NULL REFERENCES session (id),
    admitted_seq BIGINT NOT NULL,
    delivery     TEXT NOT NULL CHECK (delivery IN ('queue', 'steer')),
    text         TEXT NOT NULL,
    folded       TEXT NOT NULL,
    state        TEXT NOT NULL CHECK (state IN ('admitted', 'promoted', 'withdrawn')),
    promoted_seq BIGINT,
    message_id   TEXT,
    turn_id      TEXT,
    created_at   BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX input_waiting ON input (session_id, admitted_seq) WHERE state = 'admitted';

CREATE TABLE message (
    session_id TEXT NOT NULL REFERENCES session (id),
    id         TEXT NOT NULL,
    seq        BIGINT NOT NULL,
    role       TEXT NOT NULL,
    part       TEXT NOT NULL,
    text       TEXT NOT NULL,
    complete   BIGINT NOT NULL,
    PRIMARY KEY (session_id, id, part)
) WITHOUT ROWID;

CREATE TABLE call (
    id            TEXT PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES session (id),
    turn_id       TEXT NOT NULL,
    call_key      TEXT NOT NULL,
    tool          TEXT NOT NULL,
    input         TEXT NOT NULL,
    input_sha256  TEXT NOT NULL,
    effect        TEXT NOT NULL CHECK (effect IN ('read', 'idempotent', 'effect')),
    attempt_id    TEXT,
    state         TEXT NOT NULL,
    n             BIGINT NOT NULL,
    exit_code     BIGINT,
    signal        TEXT NOT NULL,
    reason        TEXT NOT NULL,
    output_bytes  BIGINT NOT NULL,
    dropped_bytes BIGINT NOT NULL,
    resolution    TEXT,
    allowed_by    TEXT,
    process       TEXT,
    proposed_seq  BIGINT NOT NULL,
    dispatched_at BIGINT NOT NULL,
    ended_at      BIGINT NOT NULL,
    since         BIGINT NOT NULL,
    evidence      TEXT,
    feedback      TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX call_session ON call (session_id, proposed_seq);

-- Where a call's output stands in the journal.
CREATE TABLE call_output (
    call_id     TEXT NOT NULL,
    byte_offset BIGINT NOT NULL,
    seq         BIGINT NOT NULL,
    session_id  TEXT NOT NULL REFERENCES session (id),
    stream      TEXT NOT NULL,
    bytes       BIGINT NOT NULL,
    dropped     BIGINT NOT NULL,
    PRIMARY KEY (call_id, byte_offset, seq)
) WITHOUT ROWID;
CREATE INDEX call_output_session ON call_output (session_id);

CREATE TABLE request (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session (id),
    call_id    TEXT NOT NULL,
    message_id TEXT,
    permission TEXT NOT NULL,
    resources  TEXT NOT NULL,
    always     TEXT NOT NULL,
    digest     TEXT NOT NULL,
    metadata   TEXT NOT NULL,
    state      TEXT NOT NULL,
    asked_at   BIGINT NOT NULL,
    asked_seq  BIGINT NOT NULL,
    reason     TEXT NOT NULL,
    reply      TEXT NOT NULL,
    replied_by TEXT NOT NULL,
    replied_at BIGINT NOT NULL,
    message    TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX request_session ON request (session_id, asked_seq);
CREATE INDEX request_pending ON request (asked_at) WHERE state = 'pending';

CREATE TABLE attempt (
    id         TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES session (id),
    turn_id    TEXT NOT NULL,
    model      TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('prepared', 'dispatched', 'receiving', 'settled', 'failed', 'unknown')),
    resolution TEXT NOT NULL,
    seq        BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX attempt_session ON attempt (session_id);

CREATE TABLE recovery (
    session_id   TEXT NOT NULL REFERENCES session (id),
    execution_id TEXT NOT NULL,
    seq          BIGINT NOT NULL,
    phase        TEXT NOT NULL,
    PRIMARY KEY (session_id, execution_id)
) WITHOUT ROWID;
