-- +goose Up
ALTER TABLE jobs ADD COLUMN cut         BOOLEAN NOT NULL DEFAULT FALSE; -- the listing was cut at the wanted number
ALTER TABLE jobs ADD COLUMN list_before BIGINT  NOT NULL DEFAULT 0;     -- only what is older is still listed; 0: all
ALTER TABLE jobs ADD COLUMN noted       BIGINT  NOT NULL DEFAULT 0;

-- An item is noted when its metadata is stored and its body has yet to come.
ALTER TABLE items ADD COLUMN noted BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX items_noted ON items (job, seq) WHERE state = 'noted';

-- +goose Down
DROP INDEX items_noted;
ALTER TABLE items DROP COLUMN noted;
ALTER TABLE jobs DROP COLUMN noted;
ALTER TABLE jobs DROP COLUMN list_before;
ALTER TABLE jobs DROP COLUMN cut;
