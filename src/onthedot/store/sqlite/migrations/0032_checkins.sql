-- breaking: no
-- What jobs that run elsewhere have reported: the last success, the last start without an end, and the last reports.
CREATE TABLE pings (
    job_id     INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    ok_at      INTEGER,
    started_at INTEGER,
    recent     TEXT NOT NULL  -- a JSON array, the newest first
);
