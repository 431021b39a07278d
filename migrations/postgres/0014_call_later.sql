-- +goose Up
-- What an agent said of a call of its own after it was let run, if that is something
-- else; empty: nothing. Its input stays what was let run.
ALTER TABLE call ADD COLUMN later TEXT NOT NULL DEFAULT '';
