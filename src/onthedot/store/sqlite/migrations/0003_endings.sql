-- breaking: no
-- One-off jobs that have ended and whose rows do not say so yet: one row for each batch of runs that ended.

CREATE TABLE endings (
    id       INTEGER PRIMARY KEY,
    jobs     INTEGER NOT NULL,  -- how many
    job_ids  TEXT NOT NULL,  -- a JSON array
    ended_at INTEGER NOT NULL
);

-- What is old is found tenant by tenant, by the key: an index less for each run that ends.
DROP INDEX history_age;
