-- +goose Up
-- The thread of an item, where its job may bring whole threads.
ALTER TABLE items ADD COLUMN thread TEXT NOT NULL DEFAULT '';
CREATE INDEX items_thread ON items (job, thread) WHERE state = 'pending' AND thread <> '';

ALTER TABLE jobs ADD COLUMN oversize BIGINT NOT NULL DEFAULT 0; -- messages whose body is larger than the settings let through

-- A message as Gmail parses it: a blob of JSON, beside the raw one or without it.
ALTER TABLE messages ADD COLUMN full_sha256 TEXT   NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN full_size   BIGINT NOT NULL DEFAULT 0;
ALTER TABLE mailboxes ADD COLUMN format     TEXT   NOT NULL DEFAULT ''; -- in which live sync brings bodies; raw if empty

-- What of such a message comes by itself.
CREATE TABLE attachments (
    account   TEXT   NOT NULL REFERENCES accounts (email),
    message   TEXT   NOT NULL,
    part      TEXT   NOT NULL, -- its place in the message's tree
    filename  TEXT   NOT NULL,
    mime_type TEXT   NOT NULL,
    size      BIGINT NOT NULL,
    sha256    TEXT   NOT NULL,
    PRIMARY KEY (account, message, part)
) WITHOUT ROWID;

CREATE TABLE labels (
    account TEXT NOT NULL REFERENCES accounts (email),
    id      TEXT NOT NULL,
    name    TEXT NOT NULL,
    PRIMARY KEY (account, id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE labels;
DROP TABLE attachments;
ALTER TABLE mailboxes DROP COLUMN format;
ALTER TABLE messages DROP COLUMN full_size;
ALTER TABLE messages DROP COLUMN full_sha256;
ALTER TABLE jobs DROP COLUMN oversize;
DROP INDEX items_thread;
ALTER TABLE items DROP COLUMN thread;
