-- +goose Up
-- An account's list of calendars, and what has been asked of their sync. The
-- columns from sync_token on are those of a stream, see jobs.Stream.
CREATE TABLE calendar_lists (
    account     TEXT    NOT NULL PRIMARY KEY REFERENCES accounts (email),
    asked_at    BIGINT  NOT NULL DEFAULT 0,     -- a sync that has yet to begin
    asked_all   BOOLEAN NOT NULL DEFAULT FALSE, -- it is to read everything
    begun_at    BIGINT  NOT NULL DEFAULT 0,
    done_at     BIGINT  NOT NULL DEFAULT 0,     -- when a sync last came to its end
    resume_at   BIGINT  NOT NULL DEFAULT 0,     -- when one begins by itself; 0: when it is asked for
    round       BIGINT  NOT NULL DEFAULT 0,     -- counts the syncs
    listed      BIGINT  NOT NULL DEFAULT 0,     -- the round in which the list was last read
    sync_token  TEXT    NOT NULL DEFAULT '',
    page_token  TEXT    NOT NULL DEFAULT '',
    pass        TEXT    NOT NULL DEFAULT 'first',
    gen         BIGINT  NOT NULL DEFAULT 1,
    pages       BIGINT  NOT NULL DEFAULT 0,
    restarts    BIGINT  NOT NULL DEFAULT 0,
    barren      BIGINT  NOT NULL DEFAULT 0,
    synced_at   BIGINT  NOT NULL DEFAULT 0,
    resynced_at BIGINT  NOT NULL DEFAULT 0,
    resyncs     BIGINT  NOT NULL DEFAULT 0,
    expiries    BIGINT  NOT NULL DEFAULT 0,
    failures    BIGINT  NOT NULL DEFAULT 0,
    next_try    BIGINT  NOT NULL DEFAULT 0
);
CREATE INDEX calendar_lists_asked ON calendar_lists (asked_at) WHERE asked_at > 0;
CREATE INDEX calendar_lists_resume ON calendar_lists (resume_at) WHERE resume_at > 0;

CREATE TABLE calendars (
    num         INTEGER PRIMARY KEY, -- the short key that a million events can afford
    account     TEXT    NOT NULL REFERENCES calendar_lists (account),
    id          TEXT    NOT NULL,
    seen        BIGINT  NOT NULL, -- the generation of the list that last held it
    entry       TEXT    NOT NULL, -- as Google gave it, JSON
    summary     TEXT    NOT NULL,
    time_zone   TEXT    NOT NULL,
    access_role TEXT    NOT NULL,
    is_primary  BOOLEAN NOT NULL,
    state       TEXT    NOT NULL,
    reason      TEXT    NOT NULL DEFAULT '',
    round       BIGINT  NOT NULL DEFAULT 0, -- the last one that is done with it
    sync_token  TEXT    NOT NULL DEFAULT '',
    page_token  TEXT    NOT NULL DEFAULT '',
    pass        TEXT    NOT NULL DEFAULT 'first',
    gen         BIGINT  NOT NULL DEFAULT 1,
    pages       BIGINT  NOT NULL DEFAULT 0,
    restarts    BIGINT  NOT NULL DEFAULT 0,
    barren      BIGINT  NOT NULL DEFAULT 0,
    synced_at   BIGINT  NOT NULL DEFAULT 0,
    resynced_at BIGINT  NOT NULL DEFAULT 0,
    resyncs     BIGINT  NOT NULL DEFAULT 0,
    expiries    BIGINT  NOT NULL DEFAULT 0,
    failures    BIGINT  NOT NULL DEFAULT 0,
    next_try    BIGINT  NOT NULL DEFAULT 0,
    UNIQUE (account, id)
);

CREATE TABLE events (
    calendar       BIGINT NOT NULL REFERENCES calendars (num) ON DELETE CASCADE,
    id             TEXT   NOT NULL,
    status         TEXT   NOT NULL,
    ical_uid       TEXT   NOT NULL,
    series         TEXT   NOT NULL, -- the id of the series that it is an occurrence of
    original_start TEXT   NOT NULL, -- when that would have begun, as Google gave it
    updated        BIGINT NOT NULL, -- the version; of a thin tombstone, one after what was known
    etag           TEXT   NOT NULL,
    event          TEXT   NOT NULL, -- as Google gave it, JSON; a thin tombstone is laid over what was known
    gen            BIGINT NOT NULL, -- the generation of the calendar's stream that last held it
    deleted_at     BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (calendar, id)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE events;
DROP TABLE calendars;
DROP TABLE calendar_lists;
