-- breaking: no
-- What jobs were before they were changed, and who changed them; and jobs that were deleted and can still come back.

CREATE TABLE job_versions (
    job_id     INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    verb       TEXT,  -- NULL: not known
    actor      TEXT,
    actor_kind TEXT,
    spec       TEXT NOT NULL,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;
CREATE INDEX job_versions_age ON job_versions (at);

CREATE TABLE deleted_jobs (  -- the columns of jobs; when it was deleted, and the slot that was next
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    key           TEXT,
    name          TEXT,
    key_search    TEXT,
    name_search   TEXT,
    spec          TEXT NOT NULL,
    version       INTEGER NOT NULL,
    state         TEXT NOT NULL,
    level         INTEGER NOT NULL,
    requires      TEXT NOT NULL,
    target_type   TEXT NOT NULL,
    schedule_kind TEXT NOT NULL,
    one_off       INTEGER NOT NULL,
    anchor_at     INTEGER NOT NULL,
    claimed_slot  INTEGER,
    slots_used    INTEGER NOT NULL,
    paused_at     INTEGER,
    ended_at      INTEGER,
    reason        TEXT,
    source        TEXT,
    source_paused INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    origin        TEXT,
    pause_note    TEXT,
    pause_until   INTEGER,
    owner         TEXT,
    cursor_slot   INTEGER,
    deleted_at    INTEGER NOT NULL
);
CREATE INDEX deleted_jobs_age ON deleted_jobs (deleted_at);
CREATE INDEX deleted_jobs_by_key ON deleted_jobs (tenant, key, deleted_at) WHERE key IS NOT NULL;

CREATE TABLE deleted_dead_letters (  -- the open dead letters of these jobs
    run_id    TEXT PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    failed_at INTEGER NOT NULL
);
CREATE INDEX deleted_dead_letters_of_job ON deleted_dead_letters (job_id);
