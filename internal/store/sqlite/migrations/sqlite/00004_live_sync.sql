-- +goose Up
-- What live sync knows of a message before anything has read it. 0: nothing is
-- missing. 1: its body is not wanted, since it lies in spam or trash or is
-- deleted. 2: its body has yet to come.
ALTER TABLE messages ADD COLUMN stub BIGINT NOT NULL DEFAULT 0;
CREATE INDEX messages_wanted ON messages (account, id) WHERE stub = 2;

ALTER TABLE mailboxes ADD COLUMN spam_trash BOOLEAN NOT NULL DEFAULT FALSE; -- their bodies are wanted too
ALTER TABLE mailboxes ADD COLUMN asked_at   BIGINT  NOT NULL DEFAULT 0;     -- a sync that has yet to begin
ALTER TABLE mailboxes ADD COLUMN begun_at   BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE mailboxes ADD COLUMN snapshot   TEXT    NOT NULL DEFAULT '{}';  -- of a reconciliation under way, as JSON
-- Backfills that began before there was live sync have pinned where it starts.
INSERT INTO mailboxes (account, history_id)
    SELECT account, MIN(history_id) FROM jobs
    WHERE kind = 'mail-backfill' AND filter = '{}' AND history_id <> 0
        AND account NOT IN (SELECT account FROM mailboxes)
    GROUP BY account;
CREATE INDEX mailboxes_begun ON mailboxes (begun_at);
CREATE INDEX jobs_account ON jobs (account, kind);

-- What a reconciliation has listed so far.
CREATE TABLE snapshots (
    account TEXT NOT NULL REFERENCES accounts (email),
    id      TEXT NOT NULL,
    labels  TEXT NOT NULL DEFAULT '', -- label ids, each with a newline after it
    PRIMARY KEY (account, id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE snapshots;
DROP INDEX jobs_account;
DROP INDEX mailboxes_begun;
ALTER TABLE mailboxes DROP COLUMN snapshot;
ALTER TABLE mailboxes DROP COLUMN begun_at;
ALTER TABLE mailboxes DROP COLUMN asked_at;
ALTER TABLE mailboxes DROP COLUMN spam_trash;
DROP INDEX messages_wanted;
ALTER TABLE messages DROP COLUMN stub;
