-- breaking: no
-- What the attempts that run now have printed so far, so that any node can show it. Only the attempt's own node writes
-- here; when it ends, its log is in run_logs. Not logged: a crash may empty it, the runs print on.

CREATE UNLOGGED TABLE live_logs (
    run_id     text COLLATE "C" PRIMARY KEY,
    tenant     bigint NOT NULL,
    token      bigint NOT NULL,
    log        text NOT NULL,
    updated_at bigint NOT NULL
);
