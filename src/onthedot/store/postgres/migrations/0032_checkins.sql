-- breaking: no
-- What jobs that run elsewhere have reported: the last success, the last start without an end, and the last reports.
CREATE TABLE pings (
    job_id     bigint PRIMARY KEY,
    tenant     bigint NOT NULL,
    ok_at      bigint,
    started_at bigint,
    recent     text NOT NULL  -- a JSON array, the newest first
) WITH (fillfactor = 50);
