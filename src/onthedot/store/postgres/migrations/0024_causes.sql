-- breaking: no
-- Dead letters: why the run failed, in short, and those that somebody closed with a note.

ALTER TABLE dead_letters ADD COLUMN cause text COLLATE "C" NOT NULL DEFAULT 'unknown';
ALTER TABLE deleted_dead_letters ADD COLUMN cause text COLLATE "C" NOT NULL DEFAULT 'unknown';
CREATE INDEX dead_letters_of_cause ON dead_letters (tenant, cause, failed_at, run_id);

CREATE TABLE discarded_letters (
    run_id       text COLLATE "C" PRIMARY KEY,
    tenant       bigint NOT NULL,
    job_id       bigint NOT NULL,
    slot         bigint NOT NULL,
    failed_at    bigint NOT NULL,
    cause        text COLLATE "C" NOT NULL,
    note         text,
    actor        text,
    discarded_at bigint NOT NULL
);
CREATE INDEX discarded_letters_newest ON discarded_letters (tenant, discarded_at, run_id);
CREATE INDEX discarded_letters_age ON discarded_letters (slot);
