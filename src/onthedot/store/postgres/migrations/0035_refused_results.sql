-- breaking: no
-- What nodes reported of attempts that were no longer theirs: they had been declared lost, and another node had the run.
-- And when the attempt that a run ended with was claimed. A node of the release before writes neither.
ALTER TABLE history ADD COLUMN claimed_at bigint;

CREATE TABLE refused_results (
    run_id      text COLLATE "C" NOT NULL,
    token       bigint NOT NULL,
    node        text COLLATE "C" NOT NULL,
    tenant      bigint NOT NULL,
    started_at  bigint,
    finished_at bigint NOT NULL,
    outcome     text NOT NULL,
    error       text,
    refused_at  bigint NOT NULL,
    PRIMARY KEY (run_id, token, node)
);
CREATE INDEX refused_results_age ON refused_results (refused_at);
