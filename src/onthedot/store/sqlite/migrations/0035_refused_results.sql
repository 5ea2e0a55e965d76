-- breaking: no
-- What nodes reported of attempts that were no longer theirs: they had been declared lost, and another node had the run.
-- And when the attempt that a run ended with was claimed. A node of the release before writes neither.
ALTER TABLE history ADD COLUMN claimed_at INTEGER;

CREATE TABLE refused_results (
    run_id      TEXT NOT NULL,
    token       INTEGER NOT NULL,
    node        TEXT NOT NULL,
    tenant      INTEGER NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    error       TEXT,
    refused_at  INTEGER NOT NULL,
    PRIMARY KEY (run_id, token, node)
) WITHOUT ROWID;
CREATE INDEX refused_results_age ON refused_results (refused_at);
