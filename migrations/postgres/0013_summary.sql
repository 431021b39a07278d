-- +goose Up
-- What a summary for an agent without memory is read by: which prompts there were and
-- who was told, and the agent's last words.
CREATE INDEX event_asked ON event (session_id, seq) WHERE kind IN ('turn.started', 'turn.ended', 'prompt.promoted', 'attempt.prepared', 'attempt.failed', 'attempt.unknown', 'attempt.resolved');
CREATE INDEX event_plan ON event (session_id, seq) WHERE kind = 'plan.updated';
CREATE INDEX message_said ON message (session_id, seq) WHERE role = 'agent' AND part = 'text';
