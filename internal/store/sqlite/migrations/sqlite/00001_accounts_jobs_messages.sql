-- Times are milliseconds since 1970 on the store's clock; 0 means none.
-- Columns and statements keep to what Postgres understands too, except for
-- WITHOUT ROWID and INTEGER PRIMARY KEY (there: an identity column).

-- +goose Up
CREATE TABLE accounts (
    email      TEXT   NOT NULL PRIMARY KEY, -- lower-case
    project    TEXT   NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE jobs (
    num          INTEGER PRIMARY KEY, -- the short key that a million items can afford
    id           TEXT    NOT NULL UNIQUE,
    kind         TEXT    NOT NULL,
    account      TEXT    NOT NULL REFERENCES accounts (email),
    project      TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    live         BOOLEAN NOT NULL, -- the state is not a terminal one
    epoch        BIGINT  NOT NULL,
    slice        BIGINT  NOT NULL DEFAULT 0,
    history_id   BIGINT  NOT NULL DEFAULT 0,
    page_token   TEXT    NOT NULL DEFAULT '',
    listed_all   BOOLEAN NOT NULL DEFAULT FALSE,
    expected     BIGINT  NOT NULL DEFAULT 0,
    listed       BIGINT  NOT NULL DEFAULT 0,
    stored       BIGINT  NOT NULL DEFAULT 0,
    known        BIGINT  NOT NULL DEFAULT 0,
    gone         BIGINT  NOT NULL DEFAULT 0,
    failed       BIGINT  NOT NULL DEFAULT 0,
    parse_failed BIGINT  NOT NULL DEFAULT 0,
    bytes        BIGINT  NOT NULL DEFAULT 0,
    waiting_for  TEXT    NOT NULL DEFAULT '',
    wait_until   BIGINT  NOT NULL DEFAULT 0,
    last_error   TEXT    NOT NULL DEFAULT '',
    refusals     BIGINT  NOT NULL DEFAULT 0,
    failures     BIGINT  NOT NULL DEFAULT 0,
    requeued     BIGINT  NOT NULL DEFAULT 0,
    lease_until  BIGINT  NOT NULL DEFAULT 0,
    created_at   BIGINT  NOT NULL,
    started_at   BIGINT  NOT NULL DEFAULT 0,
    finished_at  BIGINT  NOT NULL DEFAULT 0,
    updated_at   BIGINT  NOT NULL
);
CREATE INDEX jobs_live ON jobs (created_at, id) WHERE live;

-- One row for each listed id. not_before is 0 until an attempt was deferred.
CREATE TABLE items (
    job        BIGINT  NOT NULL REFERENCES jobs (num) ON DELETE CASCADE,
    id         TEXT    NOT NULL,
    seq        BIGINT  NOT NULL, -- its place in the listing, from 1
    state      TEXT    NOT NULL, -- pending, or what became of it
    attempts   INTEGER NOT NULL DEFAULT 0,
    not_before BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;
-- Finds the next fresh ids, the deferred ones that are due, and the earliest
-- moment at which one will be, without a look at any id that is done.
CREATE INDEX items_pending ON items (job, not_before, seq) WHERE state = 'pending';

CREATE TABLE failures (
    job      BIGINT  NOT NULL REFERENCES jobs (num) ON DELETE CASCADE,
    id       TEXT    NOT NULL,
    phase    TEXT    NOT NULL,
    class    TEXT    NOT NULL,
    reason   TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    given_up BOOLEAN NOT NULL, -- else the item will be tried again
    first_at BIGINT  NOT NULL,
    last_at  BIGINT  NOT NULL,
    PRIMARY KEY (job, id)
) WITHOUT ROWID;

CREATE TABLE messages (
    account       TEXT   NOT NULL REFERENCES accounts (email),
    id            TEXT   NOT NULL,
    thread_id     TEXT   NOT NULL,
    history_id    BIGINT NOT NULL,
    internal_date BIGINT NOT NULL,
    labels        TEXT   NOT NULL, -- a JSON array of label ids
    size          BIGINT NOT NULL,
    sha256        TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    parse_status  TEXT   NOT NULL,
    parse_error   TEXT   NOT NULL,
    PRIMARY KEY (account, id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE messages;
DROP TABLE failures;
DROP TABLE items;
DROP TABLE jobs;
DROP TABLE accounts;
