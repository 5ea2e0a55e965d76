-- breaking: no
-- Tenants, keys, jobs with their tags, and what makes creating idempotent. Times are ms since the epoch.

CREATE TABLE tenants (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);
INSERT INTO tenants (id, name, created_at) VALUES (1, 'default', 0);

CREATE TABLE api_keys (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     INTEGER NOT NULL REFERENCES tenants (id),
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    hashed     TEXT NOT NULL UNIQUE,
    prefix     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id);

CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY,  -- from sequences, never used twice: run ids are made of it
    tenant        INTEGER NOT NULL,
    key           TEXT,
    name          TEXT,
    key_search    TEXT,  -- case-folded copies, cut to 200 characters, for the prefix filter `q`
    name_search   TEXT,
    spec          TEXT NOT NULL,
    version       INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('active', 'paused', 'ended', 'quarantined')),
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
    source        TEXT,  -- the jobs file that owns it
    source_paused INTEGER,  -- `paused` as that file last had it: a pause by hand outlives the next load
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
);
CREATE UNIQUE INDEX jobs_key ON jobs (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_newest ON jobs (tenant, id);
CREATE INDEX jobs_by_key_search ON jobs (tenant, key_search, id) WHERE key_search IS NOT NULL;
CREATE INDEX jobs_by_name_search ON jobs (tenant, name_search, id) WHERE name_search IS NOT NULL;
CREATE INDEX jobs_by_state ON jobs (tenant, state, id);
CREATE INDEX jobs_by_target ON jobs (tenant, target_type, id);
CREATE INDEX jobs_by_schedule ON jobs (tenant, schedule_kind, id);
CREATE INDEX jobs_by_source ON jobs (tenant, source, id) WHERE source IS NOT NULL;
CREATE INDEX jobs_ended_one_off ON jobs (ended_at, id) WHERE state = 'ended' AND one_off;

CREATE TABLE job_tags (
    tenant INTEGER NOT NULL,
    tag    TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, job_id)
) WITHOUT ROWID;
CREATE INDEX job_tags_of_job ON job_tags (job_id);

CREATE TABLE idempotency (
    tenant      INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE sequences (  -- what PostgreSQL has CREATE SEQUENCE for
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO sequences (name, last) VALUES ('job_ids', 0), ('run_numbers', 0);
