-- +goose Up
CREATE INDEX jobs_newest ON jobs (created_at DESC, id DESC);

-- +goose Down
DROP INDEX jobs_newest;
