-- +goose Up
ALTER TABLE mailboxes ADD COLUMN reconcile_reason TEXT NOT NULL DEFAULT ''; -- why the mailbox is, or was last, read as a whole
ALTER TABLE mailboxes ADD COLUMN resume_at BIGINT NOT NULL DEFAULT 0; -- when that goes on; 0: with the next sync
CREATE INDEX mailboxes_resume ON mailboxes (resume_at) WHERE resume_at > 0;

-- +goose Down
DROP INDEX mailboxes_resume;
ALTER TABLE mailboxes DROP COLUMN resume_at;
ALTER TABLE mailboxes DROP COLUMN reconcile_reason;
