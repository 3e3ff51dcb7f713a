-- +goose Up
-- Whether a job's last wait was for quota, and not for a fault to pass.
ALTER TABLE jobs ADD COLUMN quota_wait BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE jobs DROP COLUMN quota_wait;
