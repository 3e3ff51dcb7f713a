-- +goose Up
-- Backfills that are under way hold a place.
ALTER TABLE jobs ADD COLUMN place TEXT   NOT NULL DEFAULT ''; -- whether the job is one of those at work
ALTER TABLE jobs ADD COLUMN units BIGINT NOT NULL DEFAULT 0;  -- of quota that the job has spent

ALTER TABLE accounts ADD COLUMN tenant TEXT NOT NULL DEFAULT ''; -- the domain of the address if empty
ALTER TABLE accounts ADD COLUMN class  TEXT NOT NULL DEFAULT ''; -- of priority; the tenant's if empty

-- +goose Down
ALTER TABLE accounts DROP COLUMN class;
ALTER TABLE accounts DROP COLUMN tenant;
ALTER TABLE jobs DROP COLUMN units;
ALTER TABLE jobs DROP COLUMN place;
