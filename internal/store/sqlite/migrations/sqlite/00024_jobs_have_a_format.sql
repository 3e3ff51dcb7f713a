-- +goose Up
-- The format of the bodies that a job fetches, out of its filter: a column that
-- processes of earlier versions need not write.
ALTER TABLE jobs ADD COLUMN format TEXT GENERATED ALWAYS AS (COALESCE(json_extract(filter, '$.format'), '')) VIRTUAL;

-- +goose Down
ALTER TABLE jobs DROP COLUMN format;
