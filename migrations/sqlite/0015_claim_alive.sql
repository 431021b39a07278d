-- +goose Up
-- When the worker of a claim last said that it lives: as it claimed, at each renewal, as
-- its execution failed. An end of the lease from outside leaves it, so that what was lost
-- is known to have gone on until then.
ALTER TABLE claim ADD COLUMN alive_at BIGINT NOT NULL DEFAULT 0;
UPDATE claim SET alive_at = expires_at - lease_ms;
