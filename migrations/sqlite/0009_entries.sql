-- +goose Up
-- The entries of a session's page: all events but pieces, whose text stands at another entry.
CREATE INDEX event_entry ON event (session_id, seq) WHERE kind NOT IN ('call.output', 'message.delta', 'call.described');

-- Messages that nobody has said whole: each is an entry, too, where it began.
CREATE INDEX message_open ON message (session_id, seq) WHERE complete = 0;
