-- +goose Up
-- Since when nothing of a job works; 0 while something does.
ALTER TABLE jobs ADD COLUMN failing_since BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE jobs DROP COLUMN failing_since;
