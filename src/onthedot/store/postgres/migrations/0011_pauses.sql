-- breaking: no
-- Why a job is paused and until when; whose job it is; the params that a run was given for itself.
ALTER TABLE jobs ADD COLUMN pause_note text;
ALTER TABLE jobs ADD COLUMN pause_until bigint;
ALTER TABLE jobs ADD COLUMN owner text COLLATE "C";
CREATE INDEX jobs_paused_until ON jobs (pause_until) WHERE state = 'paused' AND pause_until IS NOT NULL;
CREATE INDEX jobs_by_owner ON jobs (tenant, owner, (-id)) WHERE owner IS NOT NULL;

-- Few runs have any, so they are beside the runs: claims and records of the others don't carry them.
CREATE TABLE run_params (
    run_id     text COLLATE "C" PRIMARY KEY,
    tenant     bigint NOT NULL,
    params     text NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX run_params_age ON run_params (created_at);
