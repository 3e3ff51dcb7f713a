-- +goose Up
-- What has run of each schedule and account, see jobs.Slot.
CREATE TABLE schedule_slots (
    account   TEXT   NOT NULL REFERENCES accounts (email),
    schedule  TEXT   NOT NULL,
    spec      TEXT   NOT NULL,
    slot      BIGINT NOT NULL,            -- whoever moves it on runs it
    ran_at    BIGINT NOT NULL DEFAULT 0,
    result    TEXT   NOT NULL DEFAULT '',
    runs      BIGINT NOT NULL DEFAULT 0,
    catch_ups BIGINT NOT NULL DEFAULT 0,  -- of the runs
    missed    BIGINT NOT NULL DEFAULT 0,  -- slots that never had a run
    PRIMARY KEY (account, schedule)
) WITHOUT ROWID;

-- An empty name stands for all.
CREATE TABLE schedule_pauses (
    schedule   TEXT   NOT NULL,
    tenant     TEXT   NOT NULL,
    account    TEXT   NOT NULL,
    paused_at  BIGINT NOT NULL,
    resumed_at BIGINT NOT NULL DEFAULT 0, -- 0: it holds
    PRIMARY KEY (schedule, tenant, account)
) WITHOUT ROWID;

-- Rises with every change of what schedules run for, so that whoever has it in
-- memory need not read it again to know.
CREATE TABLE schedule_revision (
    only     INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    accounts BIGINT  NOT NULL,
    pauses   BIGINT  NOT NULL
);
INSERT INTO schedule_revision (only, accounts, pauses) VALUES (1, 1, 1);

CREATE INDEX mailboxes_asked ON mailboxes (asked_at) WHERE asked_at > 0;

-- +goose Down
DROP INDEX mailboxes_asked;
DROP TABLE schedule_revision;
DROP TABLE schedule_pauses;
DROP TABLE schedule_slots;
