-- +goose Up
-- What Google is asked to tell of, a row each, and for how long it does.
CREATE TABLE watches (
    account      TEXT   NOT NULL REFERENCES accounts (email),
    kind         TEXT   NOT NULL,
    calendar     TEXT   NOT NULL, -- empty unless one calendar is watched
    state        TEXT   NOT NULL,
    channel      TEXT   NOT NULL DEFAULT '', -- the one in use
    expires_at   BIGINT NOT NULL DEFAULT 0,
    renewed_at   BIGINT NOT NULL DEFAULT 0,
    renew_at     BIGINT NOT NULL DEFAULT 0,
    last_push_at BIGINT NOT NULL DEFAULT 0,
    failures     BIGINT NOT NULL DEFAULT 0, -- in a row
    next_try     BIGINT NOT NULL DEFAULT 0,
    last_error   TEXT   NOT NULL DEFAULT '',
    PRIMARY KEY (account, kind, calendar)
) WITHOUT ROWID;
CREATE INDEX watches_expiring ON watches (expires_at) WHERE state = 'active';

-- The channels on which Calendar tells. A row is there before Google is asked for
-- the channel, so that none is ever unknown.
CREATE TABLE channels (
    id           TEXT   NOT NULL PRIMARY KEY,
    account      TEXT   NOT NULL REFERENCES accounts (email),
    kind         TEXT   NOT NULL,
    calendar     TEXT   NOT NULL,
    resource     TEXT   NOT NULL DEFAULT '', -- what Google calls what is watched
    token_hash   TEXT   NOT NULL,            -- SHA-256 in hex
    state        TEXT   NOT NULL,
    expires_at   BIGINT NOT NULL DEFAULT 0,
    last_message BIGINT NOT NULL DEFAULT 0, -- the highest number that came in; those up to it do nothing any more
    created_at   BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX channels_watch ON channels (account, kind, calendar);

-- +goose Down
DROP TABLE channels;
DROP TABLE watches;
