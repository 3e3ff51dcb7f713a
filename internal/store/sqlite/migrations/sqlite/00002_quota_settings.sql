-- +goose Up
-- What people changed of the quota's settings while processes run. Rows are only
-- ever added: of a project and API the highest revision holds, the others tell
-- who changed what and when.
CREATE TABLE quota_settings (
    project  TEXT   NOT NULL,
    api      TEXT   NOT NULL,
    revision BIGINT NOT NULL, -- grows with each change
    at       BIGINT NOT NULL,
    who      TEXT   NOT NULL,
    change   TEXT   NOT NULL, -- for people
    live     TEXT   NOT NULL, -- all settings that result, as JSON
    PRIMARY KEY (project, api, revision)
) WITHOUT ROWID;

-- +goose Down
DROP TABLE quota_settings;
