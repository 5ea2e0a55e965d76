-- breaking: no
-- What jobs were before they were changed, and who changed them; and jobs that were deleted and can still come back.

CREATE TABLE job_versions (
    job_id     bigint NOT NULL,
    version    bigint NOT NULL,
    at         bigint NOT NULL,
    verb       text,  -- NULL: not known
    actor      text,
    actor_kind text,
    spec       text NOT NULL,
    PRIMARY KEY (job_id, version)
);
CREATE INDEX job_versions_age ON job_versions (at);

CREATE TABLE deleted_jobs (  -- the columns of jobs; when it was deleted, and the slot that was next
    id            bigint PRIMARY KEY,
    tenant        bigint NOT NULL,
    key           text COLLATE "C",
    name          text,
    key_search    text COLLATE "C",
    name_search   text COLLATE "C",
    spec          text NOT NULL,
    version       bigint NOT NULL,
    state         text NOT NULL,
    level         bigint NOT NULL,
    requires      text NOT NULL,
    target_type   text NOT NULL,
    schedule_kind text NOT NULL,
    one_off       boolean NOT NULL,
    anchor_at     bigint NOT NULL,
    claimed_slot  bigint,
    slots_used    bigint NOT NULL,
    paused_at     bigint,
    ended_at      bigint,
    reason        text,
    source        text COLLATE "C",
    source_paused boolean,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    origin        text,
    pause_note    text,
    pause_until   bigint,
    owner         text COLLATE "C",
    cursor_slot   bigint,
    deleted_at    bigint NOT NULL
);
CREATE INDEX deleted_jobs_age ON deleted_jobs (deleted_at);
CREATE INDEX deleted_jobs_by_key ON deleted_jobs (tenant, key, deleted_at) WHERE key IS NOT NULL;

CREATE TABLE deleted_dead_letters (  -- the open dead letters of these jobs
    run_id    text COLLATE "C" PRIMARY KEY,
    tenant    bigint NOT NULL,
    job_id    bigint NOT NULL,
    slot      bigint NOT NULL,
    failed_at bigint NOT NULL
);
CREATE INDEX deleted_dead_letters_of_job ON deleted_dead_letters (job_id);
