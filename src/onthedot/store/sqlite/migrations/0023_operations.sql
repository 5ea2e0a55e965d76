-- breaking: no
-- Bulk operations: a verb for all that match a filter, done in portions. `position`: up to where it is done.

CREATE TABLE operations (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant       INTEGER NOT NULL,
    verb         TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'running',  -- running, done, aborted, stopped
    filter       TEXT,  -- JSON: what is selected; or
    ids          TEXT,  -- JSON: these
    params       TEXT NOT NULL,  -- JSON
    rate         INTEGER,
    bound        INTEGER NOT NULL,  -- what was made after this job, or failed after this instant, is left out
    position     TEXT,  -- JSON; null: nothing is done yet
    total        INTEGER NOT NULL,
    total_exact  INTEGER NOT NULL,
    done         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    errors       TEXT NOT NULL DEFAULT '[]',
    watched      TEXT NOT NULL DEFAULT '[]',  -- JSON: redriven runs whose result is waited for
    waiting_for  INTEGER NOT NULL DEFAULT 0,
    failed_again INTEGER NOT NULL DEFAULT 0,
    actor        TEXT,
    node         TEXT,
    reason       TEXT,
    next_at      INTEGER NOT NULL,  -- the next portion is not done before
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    finished_at  INTEGER
);
CREATE INDEX operations_of_tenant ON operations (tenant, id);
CREATE INDEX operations_to_do ON operations (next_at) WHERE state = 'running';
CREATE INDEX operations_age ON operations (finished_at) WHERE finished_at IS NOT NULL;
