-- breaking: no
-- Chains: which jobs name which others (`edge` is the field of the job that names), and of runs that the end of another one
-- has started which it was, and how many stand before them.

CREATE TABLE job_chains (
    tenant     INTEGER NOT NULL,
    job_id     INTEGER NOT NULL,
    edge       TEXT NOT NULL,
    source_key TEXT,
    target_key TEXT NOT NULL,
    PRIMARY KEY (job_id, edge, target_key)
);
CREATE INDEX job_chains_by_target ON job_chains (tenant, target_key);
CREATE INDEX job_chains_by_source ON job_chains (tenant, source_key) WHERE source_key IS NOT NULL;

ALTER TABLE run_params ADD COLUMN parent TEXT;
ALTER TABLE run_params ADD COLUMN depth INTEGER;
CREATE INDEX run_params_by_parent ON run_params (parent) WHERE parent IS NOT NULL;
