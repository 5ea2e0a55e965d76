-- breaking: no
-- Runs that live, the ledger of those that ended, and the nodes that run them. Times are ms since the epoch.

CREATE TABLE runs (
    id               TEXT PRIMARY KEY,
    tenant           INTEGER NOT NULL,
    job_id           INTEGER NOT NULL,
    slot             INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    cursor           INTEGER NOT NULL DEFAULT 0,
    recurring        INTEGER NOT NULL,
    state            TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running')),
    due_at           INTEGER NOT NULL,
    ready_at         INTEGER NOT NULL,
    parked           TEXT,  -- 'paused' | 'lane' | 'quarantined'; then ready_at is NEVER
    resume_at        INTEGER,  -- what ready_at was when it was parked by a pause
    requires         TEXT NOT NULL,
    backlog          INTEGER NOT NULL DEFAULT 0,
    level            INTEGER NOT NULL,
    lane             INTEGER,
    at_most_once     INTEGER NOT NULL DEFAULT 0,
    begun_at         INTEGER,
    node             TEXT,
    token            INTEGER NOT NULL DEFAULT 0,
    tries            INTEGER NOT NULL DEFAULT 0,
    losses           INTEGER NOT NULL DEFAULT 0,
    orders           TEXT,  -- 'cancel' | 'recall' | 'gone': read by the node that holds it
    first_claimed_at INTEGER,
    claimed_at       INTEGER,
    attempts         TEXT,
    parent           TEXT,
    n                INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL
);

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
    id          TEXT NOT NULL,
    tenant      INTEGER NOT NULL,
    job_id      INTEGER NOT NULL,
    slot        INTEGER NOT NULL,
    until_slot  INTEGER,  -- a range row stands for all slots from `slot` to here, `slots` of them (null: over 10,000)
    slots       INTEGER,
    kind        TEXT NOT NULL,
    due_at      INTEGER NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('done', 'failed', 'cancelled', 'skipped')),
    reason      TEXT,
    token       INTEGER NOT NULL DEFAULT 0,
    tries       INTEGER NOT NULL DEFAULT 0,
    losses      INTEGER NOT NULL DEFAULT 0,
    node        TEXT,
    started_at  INTEGER,
    finished_at INTEGER NOT NULL,
    lateness_ms INTEGER,
    duration_ms INTEGER,
    outcome     TEXT,
    error       TEXT,
    attempts    TEXT,
    parent      TEXT,
    PRIMARY KEY (tenant, slot, id)  -- an id holds its slot and belongs to one tenant: this is the key, and the list
);
CREATE INDEX history_of_job ON history (job_id, slot, id);
CREATE INDEX history_not_done ON history (tenant, status, slot, id) WHERE status <> 'done';
CREATE INDEX history_of_job_not_done ON history (job_id, status, slot, id) WHERE status <> 'done';
CREATE INDEX history_age ON history (slot);

CREATE TABLE run_logs (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    log        TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX run_logs_age ON run_logs (updated_at);

CREATE TABLE job_stats (  -- one narrow row per recurring job; no index but the key, so that updates stay in the page
    job_id           INTEGER PRIMARY KEY,
    tenant           INTEGER NOT NULL,
    runs             INTEGER NOT NULL,
    failures         INTEGER NOT NULL,
    timed            INTEGER NOT NULL,
    duration_ms      INTEGER NOT NULL,
    last_duration_ms INTEGER,
    last_lateness_ms INTEGER,
    last_status      TEXT,
    last_run_id      TEXT,
    last_finished_at INTEGER
);

CREATE TABLE dead_letters (  -- the open ones; the ledger itself never changes
    run_id    TEXT PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    failed_at INTEGER NOT NULL
);
CREATE INDEX dead_letters_newest ON dead_letters (tenant, failed_at, run_id);
CREATE INDEX dead_letters_of_job ON dead_letters (job_id, failed_at, run_id);
CREATE INDEX dead_letters_age ON dead_letters (slot);

CREATE TABLE nodes (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    host        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    version     TEXT NOT NULL,
    level       INTEGER NOT NULL,
    roles       TEXT NOT NULL,
    offers      TEXT NOT NULL,
    capacity    INTEGER NOT NULL,
    beat        INTEGER NOT NULL DEFAULT 0,
    started_at  INTEGER NOT NULL,
    beat_at     INTEGER NOT NULL,
    lost_at     INTEGER,
    draining    INTEGER NOT NULL DEFAULT 0,
    held        INTEGER NOT NULL DEFAULT 0,
    running     INTEGER NOT NULL DEFAULT 0,
    lateness_ms INTEGER
);

CREATE TABLE duties (
    name     TEXT PRIMARY KEY,
    node     TEXT NOT NULL,
    taken_at INTEGER NOT NULL
);
