-- +goose Up
-- A message that is nothing but one attachment has that at its root, for which Google
-- has no id.
UPDATE attachments SET part = '0' WHERE part = '' AND NOT EXISTS (
    SELECT 1 FROM attachments AS other
    WHERE other.account = attachments.account AND other.message = attachments.message AND other.part = '0');

-- +goose Down
SELECT 1;
