-- breaking: no
-- Who changed what: one row for each verb of a user. Times are ms since the epoch.

CREATE TABLE audit_log (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         bigint NOT NULL,
    at             bigint NOT NULL,
    verb           text COLLATE "C" NOT NULL,
    actor          text COLLATE "C" NOT NULL,
    actor_kind     text NOT NULL,
    key_id         bigint,
    address        text,
    job_id         bigint,
    job_key        text COLLATE "C",
    run_id         text,
    version_before bigint,
    version_after  bigint,
    summary        text
);
CREATE INDEX audit_log_newest ON audit_log (tenant, at, id);
CREATE INDEX audit_log_of_job ON audit_log (tenant, job_id, at, id) WHERE job_id IS NOT NULL;
CREATE INDEX audit_log_of_key ON audit_log (tenant, job_key, at, id) WHERE job_key IS NOT NULL;
CREATE INDEX audit_log_by_actor ON audit_log (tenant, actor, at, id);
CREATE INDEX audit_log_by_verb ON audit_log (tenant, verb, at, id);
CREATE INDEX audit_log_age ON audit_log (at);
