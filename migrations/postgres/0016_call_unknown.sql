-- +goose Up
-- A call whose twin was lost is always asked (CAL-6): that is looked up for each that is
-- judged, and there may be thousands, with long inputs.
CREATE INDEX call_unknown ON call (session_id, input_sha256) WHERE state = 'unknown';
