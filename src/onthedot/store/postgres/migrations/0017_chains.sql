-- breaking: no
-- Chains: which jobs name which others (`edge` is the field of the job that names), and of runs that the end of another one
-- has started which it was, and how many stand before them.

CREATE TABLE job_chains (
    tenant     bigint NOT NULL,
    job_id     bigint NOT NULL,
    edge       text NOT NULL,
    source_key text COLLATE "C",
    target_key text COLLATE "C" NOT NULL,
    PRIMARY KEY (job_id, edge, target_key)
);
CREATE INDEX job_chains_by_target ON job_chains (tenant, target_key);
CREATE INDEX job_chains_by_source ON job_chains (tenant, source_key) WHERE source_key IS NOT NULL;

ALTER TABLE run_params ADD COLUMN parent text COLLATE "C";
ALTER TABLE run_params ADD COLUMN depth bigint;
CREATE INDEX run_params_by_parent ON run_params (parent) WHERE parent IS NOT NULL;
