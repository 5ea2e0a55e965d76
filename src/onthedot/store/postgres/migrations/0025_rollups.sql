-- breaking: no
-- What ended, per tenant and minute, hour and day, counted by the node that holds the duty; and how far it has come.

CREATE TABLE rollups (
    tenant      bigint NOT NULL,
    step        text COLLATE "C" NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
    at          bigint NOT NULL,  -- its first ms
    firings     bigint NOT NULL,
    done        bigint NOT NULL,
    failed      bigint NOT NULL,
    cancelled   bigint NOT NULL,
    skipped     bigint NOT NULL,
    timed       bigint NOT NULL,
    duration_ms bigint NOT NULL,
    longest_ms  bigint,
    lateness    text NOT NULL,  -- a JSON array: how many in each bucket
    PRIMARY KEY (tenant, step, at)
);
CREATE INDEX rollups_age ON rollups (step, at);

CREATE TABLE duty_marks (
    name text COLLATE "C" PRIMARY KEY,
    at   bigint NOT NULL
) WITH (fillfactor = 50);

-- Rows come in the order in which they end, so the lowest and highest of each 32 pages say enough, and a run that ends
-- pays nothing for it.
CREATE INDEX history_finished ON history USING brin (finished_at) WITH (pages_per_range = 32, autosummarize = on);
