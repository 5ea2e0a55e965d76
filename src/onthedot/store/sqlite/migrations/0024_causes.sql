-- breaking: no
-- Dead letters: why the run failed, in short, and those that somebody closed with a note.

ALTER TABLE dead_letters ADD COLUMN cause TEXT NOT NULL DEFAULT 'unknown';
ALTER TABLE deleted_dead_letters ADD COLUMN cause TEXT NOT NULL DEFAULT 'unknown';
CREATE INDEX dead_letters_of_cause ON dead_letters (tenant, cause, failed_at, run_id);

CREATE TABLE discarded_letters (
    run_id       TEXT PRIMARY KEY,
    tenant       INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    slot         INTEGER NOT NULL,
    failed_at    INTEGER NOT NULL,
    cause        TEXT NOT NULL,
    note         TEXT,
    actor        TEXT,
    discarded_at INTEGER NOT NULL
);
CREATE INDEX discarded_letters_newest ON discarded_letters (tenant, discarded_at, run_id);
CREATE INDEX discarded_letters_age ON discarded_letters (slot);
