CREATE TABLE alert_deliveries (
    id          INTEGER PRIMARY KEY,
    tenant      INTEGER NOT NULL,
    incident_id INTEGER NOT NULL,
    channel     TEXT NOT NULL,
    event       TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    not_before  INTEGER NOT NULL,
    quiet       INTEGER NOT NULL,
    tries       INTEGER NOT NULL,
    error       TEXT,
    taken_by    TEXT,
    taken_until INTEGER,
    sent_at     INTEGER,
    lead        INTEGER,
    failed_at   INTEGER
);

CREATE TABLE api_keys (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant     INTEGER NOT NULL REFERENCES tenants (id),
    name       TEXT NOT NULL,
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    hashed     TEXT NOT NULL UNIQUE,
    prefix     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
);

CREATE TABLE audit_log (
    id             INTEGER PRIMARY KEY,
    tenant         INTEGER NOT NULL,
    at             INTEGER NOT NULL,
    verb           TEXT NOT NULL,
    actor          TEXT NOT NULL,
    actor_kind     TEXT NOT NULL,
    key_id         INTEGER,
    address        TEXT,
    job_id         INTEGER,
    job_key        TEXT,
    run_id         TEXT,
    version_before INTEGER,
    version_after  INTEGER,
    summary        TEXT
);

CREATE TABLE dead_letters (
    run_id    TEXT PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    failed_at INTEGER NOT NULL,
    cause TEXT NOT NULL DEFAULT 'unknown'
);

CREATE TABLE deleted_dead_letters (
    run_id    TEXT PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    failed_at INTEGER NOT NULL,
    cause TEXT NOT NULL DEFAULT 'unknown'
);

CREATE TABLE deleted_jobs (
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    key           TEXT,
    name          TEXT,
    key_search    TEXT,
    name_search   TEXT,
    spec          TEXT NOT NULL,
    version       INTEGER NOT NULL,
    state         TEXT NOT NULL,
    level         INTEGER NOT NULL,
    requires      TEXT NOT NULL,
    target_type   TEXT NOT NULL,
    schedule_kind TEXT NOT NULL,
    one_off       INTEGER NOT NULL,
    anchor_at     INTEGER NOT NULL,
    claimed_slot  INTEGER,
    slots_used    INTEGER NOT NULL,
    paused_at     INTEGER,
    ended_at      INTEGER,
    reason        TEXT,
    source        TEXT,
    source_paused INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    origin        TEXT,
    pause_note    TEXT,
    pause_until   INTEGER,
    owner         TEXT,
    cursor_slot   INTEGER,
    deleted_at    INTEGER NOT NULL
);

CREATE TABLE discarded_letters (
    run_id       TEXT PRIMARY KEY,
    tenant       INTEGER NOT NULL,
    job_id       INTEGER NOT NULL,
    slot         INTEGER NOT NULL,
    failed_at    INTEGER NOT NULL,
    cause        TEXT NOT NULL,
    note         TEXT,
    actor        TEXT,
    discarded_at INTEGER NOT NULL
);

CREATE TABLE duties (
    name     TEXT PRIMARY KEY,
    node     TEXT NOT NULL,
    taken_at INTEGER NOT NULL
);

CREATE TABLE duty_marks (
    name TEXT PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE endings (
    id       INTEGER PRIMARY KEY,
    jobs     INTEGER NOT NULL,
    job_ids  TEXT NOT NULL,
    ended_at INTEGER NOT NULL
);

CREATE TABLE findings (
    name   TEXT NOT NULL,
    tenant INTEGER NOT NULL,
    found  TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (name, tenant)
);

CREATE TABLE freezes (
    id       INTEGER PRIMARY KEY,
    began_at INTEGER NOT NULL,
    ended_at INTEGER,
    note     TEXT,
    actor    TEXT
);

CREATE TABLE history (
    id          TEXT NOT NULL,
    tenant      INTEGER NOT NULL,
    job_id      INTEGER NOT NULL,
    slot        INTEGER NOT NULL,
    until_slot  INTEGER,
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
    result TEXT,
    claimed_at INTEGER,
    PRIMARY KEY (tenant, slot, id)
);

CREATE TABLE idempotency (
    tenant      INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE incidents (
    id         INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    subject    TEXT NOT NULL,
    condition  TEXT NOT NULL,
    job_id     INTEGER,
    title      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    cause      TEXT NOT NULL,
    occurrence TEXT,
    output     TEXT,
    limit_ms   INTEGER,
    ways       TEXT NOT NULL,
    count      INTEGER NOT NULL,
    opened_at  INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    alerted_at INTEGER,
    closed_at  INTEGER
);

CREATE TABLE installation (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE job_chains (
    tenant     INTEGER NOT NULL,
    job_id     INTEGER NOT NULL,
    edge       TEXT NOT NULL,
    source_key TEXT,
    target_key TEXT NOT NULL,
    PRIMARY KEY (job_id, edge, target_key)
);

CREATE TABLE job_stats (
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

CREATE TABLE job_tags (
    tenant INTEGER NOT NULL,
    tag    TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, job_id)
) WITHOUT ROWID;

CREATE TABLE job_versions (
    job_id     INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    verb       TEXT,
    actor      TEXT,
    actor_kind TEXT,
    spec       TEXT NOT NULL,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;

CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY,
    tenant        INTEGER NOT NULL,
    key           TEXT,
    name          TEXT,
    key_search    TEXT,
    name_search   TEXT,
    spec          TEXT NOT NULL,
    version       INTEGER NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('active', 'paused', 'ended', 'quarantined')),
    level         INTEGER NOT NULL,
    requires      TEXT NOT NULL,
    target_type   TEXT NOT NULL,
    schedule_kind TEXT NOT NULL,
    one_off       INTEGER NOT NULL,
    anchor_at     INTEGER NOT NULL,
    claimed_slot  INTEGER,
    slots_used    INTEGER NOT NULL,
    paused_at     INTEGER,
    ended_at      INTEGER,
    reason        TEXT,
    source        TEXT,
    source_paused INTEGER,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    origin TEXT,
    pause_note TEXT,
    pause_until INTEGER,
    owner TEXT
);

CREATE TABLE lineage (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    system     TEXT NOT NULL,
    timeline   INTEGER NOT NULL,
    previous   TEXT,
    changed_at INTEGER
);

CREATE TABLE live_logs (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    token      INTEGER NOT NULL,
    log        TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE meta (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    breaking   INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
);

CREATE TABLE node_names (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    seen_at INTEGER NOT NULL
) WITHOUT ROWID;

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
    lateness_ms INTEGER,
    binding TEXT,
    exposed INTEGER,
    destinations TEXT,
    labels TEXT,
    clock_skew_ms INTEGER
);

CREATE TABLE notes (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    tenant     INTEGER NOT NULL,
    job_id     INTEGER NOT NULL,
    run_id     TEXT NOT NULL,
    said       TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TABLE noticed_jobs (
    tenant     INTEGER NOT NULL,
    what       TEXT NOT NULL,
    job_id     INTEGER NOT NULL,
    noticed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, what, job_id)
) WITHOUT ROWID;

CREATE TABLE objective_days (
    job_id  INTEGER NOT NULL,
    day     INTEGER NOT NULL,
    late_ms INTEGER NOT NULL,
    runs    INTEGER NOT NULL,
    on_time INTEGER NOT NULL,
    PRIMARY KEY (job_id, day)
);

CREATE TABLE operations (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant       INTEGER NOT NULL,
    verb         TEXT NOT NULL,
    state        TEXT NOT NULL DEFAULT 'running',
    filter       TEXT,
    ids          TEXT,
    params       TEXT NOT NULL,
    rate         INTEGER,
    bound        INTEGER NOT NULL,
    position     TEXT,
    total        INTEGER NOT NULL,
    total_exact  INTEGER NOT NULL,
    done         INTEGER NOT NULL DEFAULT 0,
    failed       INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    errors       TEXT NOT NULL DEFAULT '[]',
    watched      TEXT NOT NULL DEFAULT '[]',
    waiting_for  INTEGER NOT NULL DEFAULT 0,
    failed_again INTEGER NOT NULL DEFAULT 0,
    actor        TEXT,
    node         TEXT,
    reason       TEXT,
    next_at      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    finished_at  INTEGER
);

CREATE TABLE pings (
    job_id     INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    ok_at      INTEGER,
    started_at INTEGER,
    recent     TEXT NOT NULL
);

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

CREATE TABLE rollups (
    tenant      INTEGER NOT NULL,
    step        TEXT NOT NULL CHECK (step IN ('minute', 'hour', 'day')),
    at          INTEGER NOT NULL,
    firings     INTEGER NOT NULL,
    done        INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    cancelled   INTEGER NOT NULL,
    skipped     INTEGER NOT NULL,
    timed       INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    longest_ms  INTEGER,
    lateness    TEXT NOT NULL,
    PRIMARY KEY (tenant, step, at)
) WITHOUT ROWID;

CREATE TABLE run_actors (
    run_id     TEXT PRIMARY KEY,
    actor      TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE run_groups (
    group_key TEXT PRIMARY KEY
);

CREATE TABLE run_logs (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    log        TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);

CREATE TABLE run_params (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    params     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    parent TEXT,
    depth INTEGER
) WITHOUT ROWID;

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
    parked           TEXT,
    resume_at        INTEGER,
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
    orders           TEXT,
    first_claimed_at INTEGER,
    claimed_at       INTEGER,
    attempts         TEXT,
    parent           TEXT,
    n                INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    work TEXT,
    open TEXT,
    open_until INTEGER,
    noted INTEGER,
    depth INTEGER,
    progress TEXT,
    waiting TEXT,
    waiting_since INTEGER,
    waiting_until INTEGER,
    group_key TEXT,
    group_limit INTEGER
);

CREATE TABLE scripts (
    tenant     INTEGER NOT NULL,
    id         TEXT NOT NULL,
    name       TEXT,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE sequences (
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
    hashed     TEXT PRIMARY KEY,
    key_id     INTEGER NOT NULL REFERENCES api_keys (id),
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
);

CREATE TABLE tenants (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE INDEX alert_deliveries_of_incident ON alert_deliveries (incident_id);

CREATE INDEX alert_deliveries_sent ON alert_deliveries (channel, sent_at) WHERE lead;

CREATE INDEX alert_deliveries_waiting ON alert_deliveries (channel, not_before) WHERE sent_at IS NULL AND failed_at IS NULL;

CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id);

CREATE INDEX audit_log_age ON audit_log (at);

CREATE INDEX audit_log_by_actor ON audit_log (tenant, actor, at, id);

CREATE INDEX audit_log_by_verb ON audit_log (tenant, verb, at, id);

CREATE INDEX audit_log_newest ON audit_log (tenant, at, id);

CREATE INDEX audit_log_of_job ON audit_log (tenant, job_id, at, id) WHERE job_id IS NOT NULL;

CREATE INDEX audit_log_of_key ON audit_log (tenant, job_key, at, id) WHERE job_key IS NOT NULL;

CREATE INDEX dead_letters_age ON dead_letters (slot);

CREATE INDEX dead_letters_newest ON dead_letters (tenant, failed_at, run_id);

CREATE INDEX dead_letters_of_cause ON dead_letters (tenant, cause, failed_at, run_id);

CREATE INDEX dead_letters_of_job ON dead_letters (job_id, failed_at, run_id);

CREATE INDEX deleted_dead_letters_of_job ON deleted_dead_letters (job_id);

CREATE INDEX deleted_jobs_age ON deleted_jobs (deleted_at);

CREATE INDEX deleted_jobs_by_key ON deleted_jobs (tenant, key, deleted_at) WHERE key IS NOT NULL;

CREATE INDEX discarded_letters_age ON discarded_letters (slot);

CREATE INDEX discarded_letters_newest ON discarded_letters (tenant, discarded_at, run_id);

CREATE UNIQUE INDEX freezes_open ON freezes ((ended_at IS NULL)) WHERE ended_at IS NULL;

CREATE INDEX history_finished ON history (finished_at);

CREATE INDEX history_not_done ON history (tenant, status, slot, id) WHERE status <> 'done';

CREATE INDEX history_of_job ON history (job_id, slot, id);

CREATE INDEX history_of_job_not_done ON history (job_id, status, slot, id) WHERE status <> 'done';

CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE INDEX incidents_age ON incidents (closed_at) WHERE closed_at IS NOT NULL;

CREATE INDEX incidents_closed ON incidents (tenant, subject, condition, closed_at) WHERE closed_at IS NOT NULL;

CREATE INDEX incidents_newest ON incidents (tenant, opened_at, id);

CREATE INDEX incidents_of_job ON incidents (tenant, job_id, opened_at, id) WHERE job_id IS NOT NULL;

CREATE UNIQUE INDEX incidents_open ON incidents (tenant, subject, condition) WHERE closed_at IS NULL;

CREATE INDEX job_chains_by_source ON job_chains (tenant, source_key) WHERE source_key IS NOT NULL;

CREATE INDEX job_chains_by_target ON job_chains (tenant, target_key);

CREATE INDEX job_tags_of_job ON job_tags (job_id);

CREATE INDEX job_versions_age ON job_versions (at);

CREATE INDEX jobs_alerting ON jobs (id) WHERE instr(spec, '"alerts":') > 0;

CREATE INDEX jobs_by_key_search ON jobs (tenant, key_search, id) WHERE key_search IS NOT NULL;

CREATE INDEX jobs_by_name_search ON jobs (tenant, name_search, id) WHERE name_search IS NOT NULL;

CREATE INDEX jobs_by_owner ON jobs (tenant, owner, id) WHERE owner IS NOT NULL;

CREATE INDEX jobs_by_source ON jobs (tenant, source, id) WHERE source IS NOT NULL;

CREATE INDEX jobs_by_title ON jobs (tenant, (coalesce(name_search, key_search)), id) WHERE coalesce(name_search, key_search) IS NOT NULL;

CREATE INDEX jobs_ended_one_off ON jobs (ended_at, id) WHERE state = 'ended' AND one_off;

CREATE UNIQUE INDEX jobs_key ON jobs (tenant, key) WHERE key IS NOT NULL;

CREATE INDEX jobs_listed ON jobs (tenant, state, target_type, schedule_kind, id);

CREATE INDEX jobs_paused_until ON jobs (pause_until) WHERE state = 'paused' AND pause_until IS NOT NULL;

CREATE INDEX jobs_with_objective ON jobs (id) WHERE instr(spec, '"objective":') > 0;

CREATE INDEX node_names_age ON node_names (seen_at);

CREATE INDEX notes_by_job ON notes (job_id);

CREATE INDEX operations_age ON operations (finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX operations_of_tenant ON operations (tenant, id);

CREATE INDEX operations_to_do ON operations (next_at) WHERE state = 'running';

CREATE INDEX refused_results_age ON refused_results (refused_at);

CREATE INDEX rollups_age ON rollups (step, at);

CREATE INDEX run_actors_age ON run_actors (created_at);

CREATE INDEX run_logs_age ON run_logs (updated_at);

CREATE INDEX run_params_age ON run_params (created_at);

CREATE INDEX run_params_by_parent ON run_params (parent) WHERE parent IS NOT NULL;

CREATE INDEX runs_adoptable ON runs (requires) WHERE open = 'adopt';

CREATE INDEX runs_called ON runs (group_key) WHERE waiting = 'group' AND state = 'pending' AND parked IS NULL;

CREATE INDEX runs_cursors ON runs (requires, backlog, ready_at)
    WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring;

CREATE INDEX runs_expire_in_group ON runs (waiting_until) WHERE parked = 'group' AND waiting_until IS NOT NULL;

CREATE INDEX runs_free ON runs (requires, backlog, ready_at)
    WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring);

CREATE INDEX runs_in_group ON runs (group_key) WHERE state = 'running' AND group_key IS NOT NULL;

CREATE INDEX runs_in_line ON runs (lane) WHERE waiting = 'group' AND state = 'pending' AND lane > 0;

CREATE INDEX runs_jittered ON runs (tenant, due_at, id) WHERE cursor AND parked IS NULL AND due_at <> slot;

CREATE UNIQUE INDEX runs_lane_holder ON runs (lane) WHERE state = 'running' AND lane > 0;

CREATE INDEX runs_lanes ON runs (requires, backlog, ready_at) WHERE state = 'pending' AND lane IS NOT NULL;

CREATE INDEX runs_listed ON runs (tenant, slot, id)
    WHERE state = 'pending' AND NOT (cursor AND parked IS NULL AND due_at = slot);

CREATE INDEX runs_manual ON runs (requires, ready_at) WHERE state = 'pending' AND kind = 'manual';

CREATE INDEX runs_next ON runs (tenant, slot, id) WHERE cursor AND parked IS NULL AND due_at = slot;

CREATE INDEX runs_of_group ON runs (group_key, group_limit) WHERE group_key IS NOT NULL;

CREATE INDEX runs_of_node ON runs (node) WHERE state = 'running';

CREATE UNIQUE INDEX runs_one_cursor ON runs (job_id) WHERE cursor;

CREATE INDEX runs_open ON runs (tenant, slot, id) WHERE open IS NOT NULL;

CREATE INDEX runs_ordered ON runs (node) WHERE orders IS NOT NULL;

CREATE INDEX runs_overdue ON runs (open_until) WHERE open IS NOT NULL;

CREATE INDEX runs_wait_for_group ON runs (group_key, due_at, id) WHERE parked = 'group';

CREATE INDEX runs_waiting ON runs (lane, due_at) WHERE parked = 'lane';

CREATE INDEX runs_waiting_until ON runs (waiting_until)
    WHERE waiting_until IS NOT NULL AND state = 'pending' AND parked IS NULL;

CREATE INDEX sessions_of_key ON sessions (key_id);

