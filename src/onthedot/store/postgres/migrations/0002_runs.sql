-- breaking: no
-- Runs that live, the ledger of those that ended, and the nodes that run them. Times are ms since the epoch.

CREATE TABLE runs (
    id               text COLLATE "C" PRIMARY KEY,
    tenant           bigint NOT NULL,
    job_id           bigint NOT NULL,
    slot             bigint NOT NULL,
    kind             text NOT NULL,
    cursor           boolean NOT NULL DEFAULT false,
    recurring        boolean NOT NULL,
    state            text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running')),
    due_at           bigint NOT NULL,
    ready_at         bigint NOT NULL,
    parked           text,  -- 'paused' | 'lane' | 'quarantined'; then ready_at is NEVER
    resume_at        bigint,  -- what ready_at was when it was parked by a pause
    requires         text COLLATE "C" NOT NULL,
    backlog          boolean NOT NULL DEFAULT false,
    level            bigint NOT NULL,
    lane             bigint,
    at_most_once     boolean NOT NULL DEFAULT false,
    begun_at         bigint,
    node             text COLLATE "C",
    token            bigint NOT NULL DEFAULT 0,
    tries            bigint NOT NULL DEFAULT 0,
    losses           bigint NOT NULL DEFAULT 0,
    orders           text,  -- 'cancel' | 'recall' | 'gone': read by the node that holds it
    first_claimed_at bigint,
    claimed_at       bigint,
    attempts         text,
    parent           text COLLATE "C",
    n                bigint NOT NULL DEFAULT 0,
    created_at       bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 1);

-- Three ways to be claimed, three ranges to look in. The claim needs a job's lock for its cursor and for its lane only.
CREATE INDEX runs_free ON runs (requires, backlog, ready_at)
    WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring);
CREATE INDEX runs_cursors ON runs (requires, backlog, ready_at)
    WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring;
CREATE INDEX runs_lanes ON runs (requires, backlog, ready_at) WHERE state = 'pending' AND lane IS NOT NULL;

CREATE UNIQUE INDEX runs_one_cursor ON runs (job_id) WHERE cursor;
CREATE INDEX runs_next ON runs (tenant, due_at, job_id) WHERE cursor AND parked IS NULL;  -- jobs by their next run
CREATE INDEX runs_of_job ON runs (job_id, slot);
CREATE INDEX runs_listed ON runs (tenant, slot, id) WHERE state = 'pending';
CREATE INDEX runs_of_node ON runs (node) WHERE state = 'running';
CREATE INDEX runs_ordered ON runs (node) WHERE orders IS NOT NULL;
CREATE UNIQUE INDEX runs_lane_holder ON runs (lane) WHERE state = 'running' AND lane IS NOT NULL;
CREATE INDEX runs_waiting ON runs (lane, due_at) WHERE parked = 'lane';

CREATE TABLE history (
    id          text COLLATE "C" NOT NULL,
    tenant      bigint NOT NULL,
    job_id      bigint NOT NULL,
    slot        bigint NOT NULL,
    until_slot  bigint,  -- a range row stands for all slots from `slot` to here, `slots` of them (null: over 10,000)
    slots       bigint,
    kind        text NOT NULL,
    due_at      bigint NOT NULL,
    status      text NOT NULL CHECK (status IN ('done', 'failed', 'cancelled', 'skipped')),
    reason      text,
    token       bigint NOT NULL DEFAULT 0,
    tries       bigint NOT NULL DEFAULT 0,
    losses      bigint NOT NULL DEFAULT 0,
    node        text,
    started_at  bigint,
    finished_at bigint NOT NULL,
    lateness_ms bigint,
    duration_ms bigint,
    outcome     text,
    error       text,
    attempts    text,
    parent      text,
    PRIMARY KEY (tenant, slot, id)  -- an id holds its slot and belongs to one tenant: this is the key, and the list
) PARTITION BY RANGE (slot);
CREATE INDEX history_of_job ON history (job_id, slot, id);
CREATE INDEX history_not_done ON history (tenant, status, slot, id) WHERE status <> 'done';
CREATE INDEX history_of_job_not_done ON history (job_id, status, slot, id) WHERE status <> 'done';
CREATE TABLE history_default PARTITION OF history DEFAULT;
CREATE INDEX history_default_age ON history_default (slot);  -- the other partitions are dropped whole

CREATE TABLE run_logs (
    run_id     text COLLATE "C" PRIMARY KEY,
    tenant     bigint NOT NULL,
    log        text NOT NULL,
    updated_at bigint NOT NULL
);
CREATE INDEX run_logs_age ON run_logs (updated_at);

CREATE TABLE job_stats (  -- one narrow row per recurring job; no index but the key, so that updates stay in the page
    job_id           bigint PRIMARY KEY,
    tenant           bigint NOT NULL,
    runs             bigint NOT NULL,
    failures         bigint NOT NULL,
    timed            bigint NOT NULL,
    duration_ms      bigint NOT NULL,
    last_duration_ms bigint,
    last_lateness_ms bigint,
    last_status      text,
    last_run_id      text,
    last_finished_at bigint
) WITH (fillfactor = 60);

CREATE TABLE dead_letters (  -- the open ones; the ledger itself never changes
    run_id    text COLLATE "C" PRIMARY KEY,
    tenant    bigint NOT NULL,
    job_id    bigint NOT NULL,
    slot      bigint NOT NULL,
    failed_at bigint NOT NULL
);
CREATE INDEX dead_letters_newest ON dead_letters (tenant, failed_at, run_id);
CREATE INDEX dead_letters_of_job ON dead_letters (job_id, failed_at, run_id);
CREATE INDEX dead_letters_age ON dead_letters (slot);

CREATE TABLE nodes (
    id          text COLLATE "C" PRIMARY KEY,
    name        text NOT NULL,
    host        text NOT NULL,
    pid         bigint NOT NULL,
    version     text NOT NULL,
    level       bigint NOT NULL,
    roles       text NOT NULL,
    offers      text NOT NULL,
    capacity    bigint NOT NULL,
    beat        bigint NOT NULL DEFAULT 0,
    started_at  bigint NOT NULL,
    beat_at     bigint NOT NULL,
    lost_at     bigint,
    draining    boolean NOT NULL DEFAULT false,
    held        bigint NOT NULL DEFAULT 0,
    running     bigint NOT NULL DEFAULT 0,
    lateness_ms bigint
) WITH (fillfactor = 50);

CREATE TABLE duties (
    name     text COLLATE "C" PRIMARY KEY,
    node     text COLLATE "C" NOT NULL,
    taken_at bigint NOT NULL
) WITH (fillfactor = 50);
