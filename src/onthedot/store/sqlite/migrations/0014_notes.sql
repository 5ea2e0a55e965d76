-- breaking: no
-- What the end of a run causes elsewhere: written in the transaction that ends it, carried out and deleted in a second one,
-- which may lock jobs. `job_id`: the job that it is done to. `said`: JSON, by the kind.

CREATE TABLE notes (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    tenant     INTEGER NOT NULL,
    job_id     INTEGER NOT NULL,
    run_id     TEXT NOT NULL,
    said       TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX notes_by_job ON notes (job_id);
