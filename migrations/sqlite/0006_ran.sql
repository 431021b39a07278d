-- +goose Up
-- How long a call's command ran; null where nobody knows. Of what is settled
-- already it is known where the execution that followed it saw its end.
ALTER TABLE call ADD COLUMN ran_ms BIGINT;
UPDATE call SET ran_ms = ended_at - dispatched_at
WHERE state IN ('succeeded', 'failed') AND dispatched_at > 0 AND adopted_at = 0
  AND id NOT IN (SELECT json_extract(data, '$.call_id') FROM event WHERE kind = 'call.settled' AND execution_id IS NULL);
