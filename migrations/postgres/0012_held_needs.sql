-- +goose Up
-- A session that keeps back what was asked goes nowhere without its owner: it needs
-- them as one that is blocked does. What is derived from the journal follows.
UPDATE session SET needs = 'blocked'
WHERE base IN ('stopped', 'failed', 'limit_reached') AND (state::json ->> 'held') = 'true'
  AND (json_array_length(state::json -> 'admitted') > 0 OR (state::json ->> 'forgotten') IS NOT NULL);
