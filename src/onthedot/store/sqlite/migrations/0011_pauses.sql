-- breaking: no
-- Why a job is paused and until when; whose job it is; the params that a run was given for itself.
ALTER TABLE jobs ADD COLUMN pause_note TEXT;
ALTER TABLE jobs ADD COLUMN pause_until INTEGER;
ALTER TABLE jobs ADD COLUMN owner TEXT;
CREATE INDEX jobs_paused_until ON jobs (pause_until) WHERE state = 'paused' AND pause_until IS NOT NULL;
CREATE INDEX jobs_by_owner ON jobs (tenant, owner, id) WHERE owner IS NOT NULL;

-- Few runs have any, so they are beside the runs: claims and records of the others don't carry them.
CREATE TABLE run_params (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    params     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_params_age ON run_params (created_at);
