-- breaking: no
-- What the attempts that run now have printed so far, so that any connection can show it. When an attempt ends, its log
-- is in run_logs.

CREATE TABLE live_logs (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    token      INTEGER NOT NULL,
    log        TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);
