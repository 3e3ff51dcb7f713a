-- +goose Up
ALTER TABLE jobs ADD COLUMN filter  TEXT   NOT NULL DEFAULT '{}'; -- which part of the mailbox, as JSON
ALTER TABLE jobs ADD COLUMN wanted  TEXT   NOT NULL DEFAULT '';   -- the state that the owner is asked to come to
ALTER TABLE jobs ADD COLUMN skipped BIGINT NOT NULL DEFAULT 0;

-- A message whose body is not there yet has an empty sha256: a stub that live
-- sync has read of, or one whose body comes after its metadata. Of a deleted one
-- the row stays, so that nothing older brings it back.
ALTER TABLE messages ADD COLUMN deleted_at BIGINT NOT NULL DEFAULT 0;

-- Where live sync of a mailbox stands.
CREATE TABLE mailboxes (
    account       TEXT   NOT NULL PRIMARY KEY REFERENCES accounts (email),
    history_id    BIGINT NOT NULL DEFAULT 0, -- all changes up to here are in the store; 0: no cursor
    synced_at     BIGINT NOT NULL DEFAULT 0,
    reconcile     BOOLEAN NOT NULL DEFAULT FALSE, -- the history was too old: read the whole mailbox once
    reconciled_at BIGINT NOT NULL DEFAULT 0
);

-- +goose Down
DROP TABLE mailboxes;
ALTER TABLE messages DROP COLUMN deleted_at;
ALTER TABLE jobs DROP COLUMN skipped;
ALTER TABLE jobs DROP COLUMN wanted;
ALTER TABLE jobs DROP COLUMN filter;
