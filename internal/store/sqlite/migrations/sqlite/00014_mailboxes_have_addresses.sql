-- +goose Up
-- The address by which Google's profile names the account's mailbox; '': not known.
ALTER TABLE accounts ADD COLUMN mailbox TEXT NOT NULL DEFAULT '';
CREATE INDEX accounts_mailbox ON accounts (mailbox);

-- +goose Down
DROP INDEX accounts_mailbox;
ALTER TABLE accounts DROP COLUMN mailbox;
