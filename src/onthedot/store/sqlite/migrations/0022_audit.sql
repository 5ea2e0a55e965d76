-- breaking: no
-- Who changed what: one row for each verb of a user. Times are ms since the epoch.

CREATE TABLE audit_log (
    id             INTEGER PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    verb           TEXT NOT NULL,
    actor          TEXT NOT NULL,
    actor_kind     TEXT NOT NULL,
    key_id         INTEGER,
    address        TEXT,
    job_id         INTEGER,
    job_key        TEXT,
    run_id         TEXT,
    version_before INTEGER,
    version_after  INTEGER,
    summary        TEXT
);
CREATE INDEX audit_log_newest ON audit_log (tenant, at, id);
CREATE INDEX audit_log_of_job ON audit_log (tenant, job_id, at, id) WHERE job_id IS NOT NULL;
CREATE INDEX audit_log_of_key ON audit_log (tenant, job_key, at, id) WHERE job_key IS NOT NULL;
CREATE INDEX audit_log_by_actor ON audit_log (tenant, actor, at, id);
CREATE INDEX audit_log_by_verb ON audit_log (tenant, verb, at, id);
CREATE INDEX audit_log_age ON audit_log (at);
