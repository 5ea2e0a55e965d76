-- breaking: no
-- What ended, per tenant and minute, hour and day, counted by the node that holds the duty; and how far it has come.

CREATE TABLE rollups (
    tenant      INTEGER NOT NULL,
    step        TEXT NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
    at          INTEGER NOT NULL,  -- its first ms
    firings     INTEGER NOT NULL,
    done        INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    cancelled   INTEGER NOT NULL,
    skipped     INTEGER NOT NULL,
    timed       INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    longest_ms  INTEGER,
    lateness    TEXT NOT NULL,  -- a JSON array: how many in each bucket
    PRIMARY KEY (tenant, step, at)
) WITHOUT ROWID;
CREATE INDEX rollups_age ON rollups (step, at);

CREATE TABLE duty_marks (
    name TEXT PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX history_finished ON history (finished_at);
