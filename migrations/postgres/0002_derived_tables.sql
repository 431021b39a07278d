-- +goose Up
-- What two derived tables hold has become less; this is what the journal says of them now.
-- A message has its text from when it is whole: its deltas are in the journal.
UPDATE message SET text = '' WHERE complete = 0;

-- The output of a call is that of its last dispatch.
DELETE FROM call_output WHERE EXISTS (
    SELECT 1 FROM event
    WHERE event.session_id = call_output.session_id AND event.seq > call_output.seq
        AND event.kind = 'call.dispatched' AND event.data LIKE '%"call_id":"' || call_output.call_id || '"%'
);
