-- +goose Up
-- A session that keeps back what was asked goes nowhere without its owner: it needs
-- them as one that is blocked does. What is derived from the journal follows.
UPDATE session SET needs = 'blocked'
WHERE base IN ('stopped', 'failed', 'limit_reached') AND json_extract(state, '$.held') = 1
  AND (json_array_length(json_extract(state, '$.admitted')) > 0 OR json_extract(state, '$.forgotten') IS NOT NULL);
