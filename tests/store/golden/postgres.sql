CREATE TABLE alert_deliveries (
    id bigint NOT NULL IDENTITY,
    tenant bigint NOT NULL,
    incident_id bigint NOT NULL,
    channel text COLLATE C NOT NULL,
    event text NOT NULL,
    created_at bigint NOT NULL,
    not_before bigint NOT NULL,
    quiet boolean NOT NULL,
    tries bigint NOT NULL,
    error text,
    taken_by text COLLATE C,
    taken_until bigint,
    sent_at bigint,
    lead boolean,
    failed_at bigint,
    PRIMARY KEY (id)
);

CREATE TABLE api_keys (
    id bigint NOT NULL IDENTITY,
    tenant bigint NOT NULL,
    name text NOT NULL,
    scope text NOT NULL,
    hashed text COLLATE C NOT NULL,
    prefix text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    CHECK ((scope = ANY (ARRAY['read'::text, 'write'::text, 'admin'::text]))),
    FOREIGN KEY (tenant) REFERENCES tenants(id),
    PRIMARY KEY (id),
    UNIQUE (hashed)
);

CREATE TABLE audit_log (
    id bigint NOT NULL IDENTITY,
    tenant bigint NOT NULL,
    at bigint NOT NULL,
    verb text COLLATE C NOT NULL,
    actor text COLLATE C NOT NULL,
    actor_kind text NOT NULL,
    key_id bigint,
    address text,
    job_id bigint,
    job_key text COLLATE C,
    run_id text,
    version_before bigint,
    version_after bigint,
    summary text,
    PRIMARY KEY (id)
);

CREATE TABLE dead_letters (
    run_id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    slot bigint NOT NULL,
    failed_at bigint NOT NULL,
    cause text COLLATE C NOT NULL DEFAULT 'unknown'::text,
    PRIMARY KEY (run_id)
);

CREATE TABLE deleted_dead_letters (
    run_id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    slot bigint NOT NULL,
    failed_at bigint NOT NULL,
    cause text COLLATE C NOT NULL DEFAULT 'unknown'::text,
    PRIMARY KEY (run_id)
);

CREATE TABLE deleted_jobs (
    id bigint NOT NULL,
    tenant bigint NOT NULL,
    key text COLLATE C,
    name text,
    key_search text COLLATE C,
    name_search text COLLATE C,
    spec text NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    level bigint NOT NULL,
    requires text NOT NULL,
    target_type text NOT NULL,
    schedule_kind text NOT NULL,
    one_off boolean NOT NULL,
    anchor_at bigint NOT NULL,
    claimed_slot bigint,
    slots_used bigint NOT NULL,
    paused_at bigint,
    ended_at bigint,
    reason text,
    source text COLLATE C,
    source_paused boolean,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    origin text,
    pause_note text,
    pause_until bigint,
    owner text COLLATE C,
    cursor_slot bigint,
    deleted_at bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE discarded_letters (
    run_id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    slot bigint NOT NULL,
    failed_at bigint NOT NULL,
    cause text COLLATE C NOT NULL,
    note text,
    actor text,
    discarded_at bigint NOT NULL,
    PRIMARY KEY (run_id)
);

CREATE TABLE duties (
    name text COLLATE C NOT NULL,
    node text COLLATE C NOT NULL,
    taken_at bigint NOT NULL,
    PRIMARY KEY (name)
) WITH (fillfactor=50);

CREATE TABLE duty_marks (
    name text COLLATE C NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (name)
) WITH (fillfactor=50);

CREATE TABLE endings (
    id bigint NOT NULL IDENTITY,
    jobs bigint NOT NULL,
    job_ids bigint[] NOT NULL STORAGE e,
    ended_at bigint NOT NULL,
    PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=1);

CREATE TABLE findings (
    name text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    found text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (name, tenant)
);

CREATE TABLE freezes (
    id bigint NOT NULL IDENTITY,
    began_at bigint NOT NULL,
    ended_at bigint,
    note text,
    actor text,
    PRIMARY KEY (id)
);

CREATE TABLE history (
    id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    slot bigint NOT NULL,
    until_slot bigint,
    slots bigint,
    kind text NOT NULL,
    due_at bigint NOT NULL,
    status text NOT NULL,
    reason text,
    token bigint NOT NULL DEFAULT 0,
    tries bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    node text,
    started_at bigint,
    finished_at bigint NOT NULL,
    lateness_ms bigint,
    duration_ms bigint,
    outcome text,
    error text,
    attempts text,
    parent text,
    result text,
    claimed_at bigint,
    CHECK ((status = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text, 'skipped'::text]))),
    PRIMARY KEY (tenant, slot, id)
) PARTITION BY RANGE (slot);

CREATE TABLE history_default (
    id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    slot bigint NOT NULL,
    until_slot bigint,
    slots bigint,
    kind text NOT NULL,
    due_at bigint NOT NULL,
    status text NOT NULL,
    reason text,
    token bigint NOT NULL DEFAULT 0,
    tries bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    node text,
    started_at bigint,
    finished_at bigint NOT NULL,
    lateness_ms bigint,
    duration_ms bigint,
    outcome text,
    error text,
    attempts text,
    parent text,
    result text,
    claimed_at bigint,
    CHECK ((status = ANY (ARRAY['done'::text, 'failed'::text, 'cancelled'::text, 'skipped'::text]))),
    PRIMARY KEY (tenant, slot, id)
) PARTITION DEFAULT;

CREATE TABLE idempotency (
    tenant bigint NOT NULL,
    key text COLLATE C NOT NULL,
    fingerprint text NOT NULL,
    result text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE TABLE incidents (
    id bigint NOT NULL IDENTITY,
    tenant bigint NOT NULL,
    subject text COLLATE C NOT NULL,
    condition text COLLATE C NOT NULL,
    job_id bigint,
    title text NOT NULL,
    reason text NOT NULL,
    cause text NOT NULL,
    occurrence text COLLATE C,
    output text,
    limit_ms bigint,
    ways text NOT NULL,
    count bigint NOT NULL,
    opened_at bigint NOT NULL,
    last_at bigint NOT NULL,
    alerted_at bigint,
    closed_at bigint,
    PRIMARY KEY (id)
);

CREATE TABLE installation (
    name text COLLATE C NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (name)
);

CREATE TABLE job_chains (
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    edge text NOT NULL,
    source_key text COLLATE C,
    target_key text COLLATE C NOT NULL,
    PRIMARY KEY (job_id, edge, target_key)
);

CREATE TABLE job_stats (
    job_id bigint NOT NULL,
    tenant bigint NOT NULL,
    runs bigint NOT NULL,
    failures bigint NOT NULL,
    timed bigint NOT NULL,
    duration_ms bigint NOT NULL,
    last_duration_ms bigint,
    last_lateness_ms bigint,
    last_status text,
    last_run_id text,
    last_finished_at bigint,
    PRIMARY KEY (job_id)
) WITH (fillfactor=60);

CREATE TABLE job_tags (
    tenant bigint NOT NULL,
    tag text COLLATE C NOT NULL,
    job_id bigint NOT NULL,
    PRIMARY KEY (tenant, tag, job_id)
);

CREATE TABLE job_versions (
    job_id bigint NOT NULL,
    version bigint NOT NULL,
    at bigint NOT NULL,
    verb text,
    actor text,
    actor_kind text,
    spec text NOT NULL,
    PRIMARY KEY (job_id, version)
);

CREATE TABLE jobs (
    id bigint NOT NULL,
    tenant bigint NOT NULL,
    key text COLLATE C,
    name text,
    key_search text COLLATE C,
    name_search text COLLATE C,
    spec text NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    level bigint NOT NULL,
    requires text NOT NULL,
    target_type text NOT NULL,
    schedule_kind text NOT NULL,
    one_off boolean NOT NULL,
    anchor_at bigint NOT NULL,
    claimed_slot bigint,
    slots_used bigint NOT NULL,
    paused_at bigint,
    ended_at bigint,
    reason text,
    source text COLLATE C,
    source_paused boolean,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    origin text,
    pause_note text,
    pause_until bigint,
    owner text COLLATE C,
    CHECK ((state = ANY (ARRAY['active'::text, 'paused'::text, 'ended'::text, 'quarantined'::text]))),
    PRIMARY KEY (id)
);

CREATE TABLE lineage (
    id bigint NOT NULL,
    system text NOT NULL,
    timeline bigint NOT NULL,
    previous text,
    changed_at bigint,
    CHECK ((id = 1)),
    PRIMARY KEY (id)
);

CREATE TABLE live_logs (
    run_id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    token bigint NOT NULL,
    log text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (run_id)
);

CREATE TABLE meta (
    number bigint NOT NULL,
    name text NOT NULL,
    breaking boolean NOT NULL,
    applied_at bigint NOT NULL,
    PRIMARY KEY (number)
);

CREATE TABLE node_names (
    id text COLLATE C NOT NULL,
    name text NOT NULL,
    seen_at bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE nodes (
    id text COLLATE C NOT NULL,
    name text NOT NULL,
    host text NOT NULL,
    pid bigint NOT NULL,
    version text NOT NULL,
    level bigint NOT NULL,
    roles text NOT NULL,
    offers text NOT NULL,
    capacity bigint NOT NULL,
    beat bigint NOT NULL DEFAULT 0,
    started_at bigint NOT NULL,
    beat_at bigint NOT NULL,
    lost_at bigint,
    draining boolean NOT NULL DEFAULT false,
    held bigint NOT NULL DEFAULT 0,
    running bigint NOT NULL DEFAULT 0,
    lateness_ms bigint,
    binding text,
    exposed boolean,
    destinations text,
    labels text,
    clock_skew_ms bigint,
    PRIMARY KEY (id)
) WITH (fillfactor=50);

CREATE TABLE notes (
    id bigint NOT NULL IDENTITY,
    kind text NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    run_id text COLLATE C NOT NULL,
    said text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (id)
);

CREATE TABLE noticed_jobs (
    tenant bigint NOT NULL,
    what text COLLATE C NOT NULL,
    job_id bigint NOT NULL,
    noticed_at bigint NOT NULL,
    PRIMARY KEY (tenant, what, job_id)
);

CREATE TABLE objective_days (
    job_id bigint NOT NULL,
    day bigint NOT NULL,
    late_ms bigint NOT NULL,
    runs bigint NOT NULL,
    on_time bigint NOT NULL,
    PRIMARY KEY (job_id, day)
);

CREATE TABLE operations (
    id bigint NOT NULL IDENTITY,
    tenant bigint NOT NULL,
    verb text NOT NULL,
    state text NOT NULL DEFAULT 'running'::text,
    filter text,
    ids text,
    params text NOT NULL,
    rate bigint,
    bound bigint NOT NULL,
    position text,
    total bigint NOT NULL,
    total_exact boolean NOT NULL,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    errors text NOT NULL DEFAULT '[]'::text,
    watched text NOT NULL DEFAULT '[]'::text,
    waiting_for bigint NOT NULL DEFAULT 0,
    failed_again bigint NOT NULL DEFAULT 0,
    actor text,
    node text,
    reason text,
    next_at bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    finished_at bigint,
    PRIMARY KEY (id)
);

CREATE TABLE pings (
    job_id bigint NOT NULL,
    tenant bigint NOT NULL,
    ok_at bigint,
    started_at bigint,
    recent text NOT NULL,
    PRIMARY KEY (job_id)
) WITH (fillfactor=50);

CREATE TABLE refused_results (
    run_id text COLLATE C NOT NULL,
    token bigint NOT NULL,
    node text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    started_at bigint,
    finished_at bigint NOT NULL,
    outcome text NOT NULL,
    error text,
    refused_at bigint NOT NULL,
    PRIMARY KEY (run_id, token, node)
);

CREATE TABLE rollups (
    tenant bigint NOT NULL,
    step text COLLATE C NOT NULL,
    at bigint NOT NULL,
    firings bigint NOT NULL,
    done bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    skipped bigint NOT NULL,
    timed bigint NOT NULL,
    duration_ms bigint NOT NULL,
    longest_ms bigint,
    lateness text NOT NULL,
    CHECK ((step = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text]))),
    PRIMARY KEY (tenant, step, at)
);

CREATE TABLE run_actors (
    run_id text COLLATE C NOT NULL,
    actor text COLLATE C NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (run_id)
);

CREATE TABLE run_groups (
    group_key text COLLATE C NOT NULL,
    PRIMARY KEY (group_key)
);

CREATE TABLE run_logs (
    run_id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    log text NOT NULL,
    updated_at bigint NOT NULL,
    PRIMARY KEY (run_id)
);

CREATE TABLE run_params (
    run_id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    params text NOT NULL,
    created_at bigint NOT NULL,
    parent text COLLATE C,
    depth bigint,
    PRIMARY KEY (run_id)
);

CREATE TABLE runs (
    id text COLLATE C NOT NULL,
    tenant bigint NOT NULL,
    job_id bigint NOT NULL,
    slot bigint NOT NULL,
    kind text NOT NULL,
    cursor boolean NOT NULL DEFAULT false,
    recurring boolean NOT NULL,
    state text NOT NULL DEFAULT 'pending'::text,
    due_at bigint NOT NULL,
    ready_at bigint NOT NULL,
    parked text,
    resume_at bigint,
    requires text COLLATE C NOT NULL,
    backlog boolean NOT NULL DEFAULT false,
    level bigint NOT NULL,
    lane bigint,
    at_most_once boolean NOT NULL DEFAULT false,
    begun_at bigint,
    node text COLLATE C,
    token bigint NOT NULL DEFAULT 0,
    tries bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    orders text,
    first_claimed_at bigint,
    claimed_at bigint,
    attempts text,
    parent text COLLATE C,
    n bigint NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    work text,
    open text,
    open_until bigint,
    noted boolean,
    depth bigint,
    progress text,
    waiting text,
    waiting_since bigint,
    waiting_until bigint,
    group_key text COLLATE C,
    group_limit bigint,
    CHECK ((state = ANY (ARRAY['pending'::text, 'running'::text]))),
    PRIMARY KEY (id)
) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05, autovacuum_vacuum_cost_delay=1);

CREATE TABLE scripts (
    tenant bigint NOT NULL,
    id text COLLATE C NOT NULL,
    name text,
    size bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE sessions (
    hashed text COLLATE C NOT NULL,
    key_id bigint NOT NULL,
    created_at bigint NOT NULL,
    used_at bigint NOT NULL,
    FOREIGN KEY (key_id) REFERENCES api_keys(id),
    PRIMARY KEY (hashed)
);

CREATE TABLE tenants (
    id bigint NOT NULL IDENTITY,
    name text COLLATE C NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (name)
);

CREATE INDEX alert_deliveries_of_incident ON public.alert_deliveries USING btree (incident_id);
CREATE UNIQUE INDEX alert_deliveries_pkey ON public.alert_deliveries USING btree (id);
CREATE INDEX alert_deliveries_sent ON public.alert_deliveries USING btree (channel, sent_at) WHERE lead;
CREATE INDEX alert_deliveries_waiting ON public.alert_deliveries USING btree (channel, not_before) WHERE ((sent_at IS NULL) AND (failed_at IS NULL));
CREATE UNIQUE INDEX api_keys_hashed_key ON public.api_keys USING btree (hashed);
CREATE INDEX api_keys_of_tenant ON public.api_keys USING btree (tenant, id);
CREATE UNIQUE INDEX api_keys_pkey ON public.api_keys USING btree (id);
CREATE INDEX audit_log_age ON public.audit_log USING btree (at);
CREATE INDEX audit_log_by_actor ON public.audit_log USING btree (tenant, actor, at, id);
CREATE INDEX audit_log_by_verb ON public.audit_log USING btree (tenant, verb, at, id);
CREATE INDEX audit_log_newest ON public.audit_log USING btree (tenant, at, id);
CREATE INDEX audit_log_of_job ON public.audit_log USING btree (tenant, job_id, at, id) WHERE (job_id IS NOT NULL);
CREATE INDEX audit_log_of_key ON public.audit_log USING btree (tenant, job_key, at, id) WHERE (job_key IS NOT NULL);
CREATE UNIQUE INDEX audit_log_pkey ON public.audit_log USING btree (id);
CREATE INDEX dead_letters_age ON public.dead_letters USING btree (slot);
CREATE INDEX dead_letters_newest ON public.dead_letters USING btree (tenant, failed_at, run_id);
CREATE INDEX dead_letters_of_cause ON public.dead_letters USING btree (tenant, cause, failed_at, run_id);
CREATE INDEX dead_letters_of_job ON public.dead_letters USING btree (job_id, failed_at, run_id);
CREATE UNIQUE INDEX dead_letters_pkey ON public.dead_letters USING btree (run_id);
CREATE INDEX deleted_dead_letters_of_job ON public.deleted_dead_letters USING btree (job_id);
CREATE UNIQUE INDEX deleted_dead_letters_pkey ON public.deleted_dead_letters USING btree (run_id);
CREATE INDEX deleted_jobs_age ON public.deleted_jobs USING btree (deleted_at);
CREATE INDEX deleted_jobs_by_key ON public.deleted_jobs USING btree (tenant, key, deleted_at) WHERE (key IS NOT NULL);
CREATE UNIQUE INDEX deleted_jobs_pkey ON public.deleted_jobs USING btree (id);
CREATE INDEX discarded_letters_age ON public.discarded_letters USING btree (slot);
CREATE INDEX discarded_letters_newest ON public.discarded_letters USING btree (tenant, discarded_at, run_id);
CREATE UNIQUE INDEX discarded_letters_pkey ON public.discarded_letters USING btree (run_id);
CREATE UNIQUE INDEX duties_pkey ON public.duties USING btree (name);
CREATE UNIQUE INDEX duty_marks_pkey ON public.duty_marks USING btree (name);
CREATE UNIQUE INDEX endings_pkey ON public.endings USING btree (id);
CREATE UNIQUE INDEX findings_pkey ON public.findings USING btree (name, tenant);
CREATE UNIQUE INDEX freezes_open ON public.freezes USING btree (((ended_at IS NULL))) WHERE (ended_at IS NULL);
CREATE UNIQUE INDEX freezes_pkey ON public.freezes USING btree (id);
CREATE INDEX history_default_age ON public.history_default USING btree (slot);
CREATE INDEX history_default_finished_at_idx ON public.history_default USING brin (finished_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX history_default_job_id_slot_id_idx ON public.history_default USING btree (job_id, slot, id);
CREATE INDEX history_default_job_id_status_slot_id_idx ON public.history_default USING btree (job_id, status, slot, id) WHERE (status <> 'done'::text);
CREATE UNIQUE INDEX history_default_pkey ON public.history_default USING btree (tenant, slot, id);
CREATE INDEX history_default_tenant_status_slot_id_idx ON public.history_default USING btree (tenant, status, slot, id) WHERE (status <> 'done'::text);
CREATE INDEX history_finished ON ONLY public.history USING brin (finished_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX history_not_done ON ONLY public.history USING btree (tenant, status, slot, id) WHERE (status <> 'done'::text);
CREATE INDEX history_of_job ON ONLY public.history USING btree (job_id, slot, id);
CREATE INDEX history_of_job_not_done ON ONLY public.history USING btree (job_id, status, slot, id) WHERE (status <> 'done'::text);
CREATE UNIQUE INDEX history_pkey ON ONLY public.history USING btree (tenant, slot, id);
CREATE INDEX idempotency_age ON public.idempotency USING btree (created_at);
CREATE UNIQUE INDEX idempotency_pkey ON public.idempotency USING btree (tenant, key);
CREATE INDEX incidents_age ON public.incidents USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE INDEX incidents_closed ON public.incidents USING btree (tenant, subject, condition, closed_at) WHERE (closed_at IS NOT NULL);
CREATE INDEX incidents_newest ON public.incidents USING btree (tenant, opened_at, id);
CREATE INDEX incidents_of_job ON public.incidents USING btree (tenant, job_id, opened_at, id) WHERE (job_id IS NOT NULL);
CREATE UNIQUE INDEX incidents_open ON public.incidents USING btree (tenant, subject, condition) WHERE (closed_at IS NULL);
CREATE UNIQUE INDEX incidents_pkey ON public.incidents USING btree (id);
CREATE UNIQUE INDEX installation_pkey ON public.installation USING btree (name);
CREATE INDEX job_chains_by_source ON public.job_chains USING btree (tenant, source_key) WHERE (source_key IS NOT NULL);
CREATE INDEX job_chains_by_target ON public.job_chains USING btree (tenant, target_key);
CREATE UNIQUE INDEX job_chains_pkey ON public.job_chains USING btree (job_id, edge, target_key);
CREATE UNIQUE INDEX job_stats_pkey ON public.job_stats USING btree (job_id);
CREATE INDEX job_tags_of_job ON public.job_tags USING btree (job_id);
CREATE UNIQUE INDEX job_tags_pkey ON public.job_tags USING btree (tenant, tag, job_id);
CREATE INDEX job_versions_age ON public.job_versions USING btree (at);
CREATE UNIQUE INDEX job_versions_pkey ON public.job_versions USING btree (job_id, version);
CREATE INDEX jobs_alerting ON public.jobs USING btree (id) WHERE (POSITION(('"alerts":'::text) IN (spec)) > 0);
CREATE INDEX jobs_by_key_search ON public.jobs USING btree (tenant, key_search, id) WHERE (key_search IS NOT NULL);
CREATE INDEX jobs_by_name_search ON public.jobs USING btree (tenant, name_search, id) WHERE (name_search IS NOT NULL);
CREATE INDEX jobs_by_owner ON public.jobs USING btree (tenant, owner, ((- id))) WHERE (owner IS NOT NULL);
CREATE INDEX jobs_by_source ON public.jobs USING btree (tenant, source, id) WHERE (source IS NOT NULL);
CREATE INDEX jobs_by_title ON public.jobs USING btree (tenant, COALESCE(name_search, key_search), id) WHERE (COALESCE(name_search, key_search) IS NOT NULL);
CREATE INDEX jobs_ended_one_off ON public.jobs USING btree (ended_at, id) WHERE ((state = 'ended'::text) AND one_off);
CREATE UNIQUE INDEX jobs_key ON public.jobs USING btree (tenant, key) WHERE (key IS NOT NULL);
CREATE INDEX jobs_listed ON public.jobs USING btree (tenant, state, target_type, schedule_kind, ((id + 0)));
CREATE INDEX jobs_paused_until ON public.jobs USING btree (pause_until) WHERE ((state = 'paused'::text) AND (pause_until IS NOT NULL));
CREATE UNIQUE INDEX jobs_pkey ON public.jobs USING btree (id);
CREATE INDEX jobs_with_objective ON public.jobs USING btree (id) WHERE (POSITION(('"objective":'::text) IN (spec)) > 0);
CREATE UNIQUE INDEX lineage_pkey ON public.lineage USING btree (id);
CREATE UNIQUE INDEX live_logs_pkey ON public.live_logs USING btree (run_id);
CREATE UNIQUE INDEX meta_pkey ON public.meta USING btree (number);
CREATE INDEX node_names_age ON public.node_names USING btree (seen_at);
CREATE UNIQUE INDEX node_names_pkey ON public.node_names USING btree (id);
CREATE UNIQUE INDEX nodes_pkey ON public.nodes USING btree (id);
CREATE INDEX notes_by_job ON public.notes USING btree (job_id);
CREATE UNIQUE INDEX notes_pkey ON public.notes USING btree (id);
CREATE UNIQUE INDEX noticed_jobs_pkey ON public.noticed_jobs USING btree (tenant, what, job_id);
CREATE UNIQUE INDEX objective_days_pkey ON public.objective_days USING btree (job_id, day);
CREATE INDEX operations_age ON public.operations USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX operations_of_tenant ON public.operations USING btree (tenant, id);
CREATE UNIQUE INDEX operations_pkey ON public.operations USING btree (id);
CREATE INDEX operations_to_do ON public.operations USING btree (next_at) WHERE (state = 'running'::text);
CREATE UNIQUE INDEX pings_pkey ON public.pings USING btree (job_id);
CREATE INDEX refused_results_age ON public.refused_results USING btree (refused_at);
CREATE UNIQUE INDEX refused_results_pkey ON public.refused_results USING btree (run_id, token, node);
CREATE INDEX rollups_age ON public.rollups USING btree (step, at);
CREATE UNIQUE INDEX rollups_pkey ON public.rollups USING btree (tenant, step, at);
CREATE INDEX run_actors_age ON public.run_actors USING btree (created_at);
CREATE UNIQUE INDEX run_actors_pkey ON public.run_actors USING btree (run_id);
CREATE UNIQUE INDEX run_groups_pkey ON public.run_groups USING btree (group_key);
CREATE INDEX run_logs_age ON public.run_logs USING btree (updated_at);
CREATE UNIQUE INDEX run_logs_pkey ON public.run_logs USING btree (run_id);
CREATE INDEX run_params_age ON public.run_params USING btree (created_at);
CREATE INDEX run_params_by_parent ON public.run_params USING btree (parent) WHERE (parent IS NOT NULL);
CREATE UNIQUE INDEX run_params_pkey ON public.run_params USING btree (run_id);
CREATE INDEX runs_adoptable ON public.runs USING btree (requires) WHERE (open = 'adopt'::text);
CREATE INDEX runs_called ON public.runs USING btree (group_key) WHERE ((waiting = 'group'::text) AND (state = 'pending'::text) AND (parked IS NULL));
CREATE INDEX runs_cursors ON public.runs USING btree (requires, backlog, ready_at) WHERE ((state = 'pending'::text) AND (lane IS NULL) AND cursor AND recurring);
CREATE INDEX runs_expire_in_group ON public.runs USING btree (waiting_until) WHERE ((parked = 'group'::text) AND (waiting_until IS NOT NULL));
CREATE INDEX runs_free ON public.runs USING btree (requires, backlog, ready_at) WHERE ((state = 'pending'::text) AND (lane IS NULL) AND (NOT (cursor AND recurring)));
CREATE INDEX runs_in_group ON public.runs USING btree (group_key) WHERE ((state = 'running'::text) AND (group_key IS NOT NULL));
CREATE INDEX runs_in_line ON public.runs USING btree (lane) WHERE ((waiting = 'group'::text) AND (state = 'pending'::text) AND (lane > 0));
CREATE INDEX runs_jittered ON public.runs USING btree (tenant, due_at, id) WHERE (cursor AND (parked IS NULL) AND (due_at <> slot));
CREATE UNIQUE INDEX runs_lane_holder ON public.runs USING btree (lane) WHERE ((state = 'running'::text) AND (lane > 0));
CREATE INDEX runs_lanes ON public.runs USING btree (requires, backlog, ready_at) WHERE ((state = 'pending'::text) AND (lane IS NOT NULL));
CREATE INDEX runs_listed ON public.runs USING btree (tenant, slot, id) WHERE ((state = 'pending'::text) AND (NOT (cursor AND (parked IS NULL) AND (due_at = slot))));
CREATE INDEX runs_manual ON public.runs USING btree (requires, ready_at) WHERE ((state = 'pending'::text) AND (kind = 'manual'::text));
CREATE INDEX runs_next ON public.runs USING btree (tenant, slot, id) WHERE (cursor AND (parked IS NULL) AND (due_at = slot));
CREATE INDEX runs_of_group ON public.runs USING btree (group_key, group_limit) WHERE (group_key IS NOT NULL);
CREATE INDEX runs_of_node ON public.runs USING btree (node) WHERE (state = 'running'::text);
CREATE UNIQUE INDEX runs_one_cursor ON public.runs USING btree (job_id) WHERE cursor;
CREATE INDEX runs_open ON public.runs USING btree (tenant, slot, id) WHERE (open IS NOT NULL);
CREATE INDEX runs_ordered ON public.runs USING btree (node) WHERE (orders IS NOT NULL);
CREATE INDEX runs_overdue ON public.runs USING btree (open_until) WHERE (open IS NOT NULL);
CREATE UNIQUE INDEX runs_pkey ON public.runs USING btree (id);
CREATE INDEX runs_wait_for_group ON public.runs USING btree (group_key, due_at, id) WHERE (parked = 'group'::text);
CREATE INDEX runs_waiting ON public.runs USING btree (lane, due_at) WHERE (parked = 'lane'::text);
CREATE INDEX runs_waiting_until ON public.runs USING btree (waiting_until) WHERE ((waiting_until IS NOT NULL) AND (state = 'pending'::text) AND (parked IS NULL));
CREATE UNIQUE INDEX scripts_pkey ON public.scripts USING btree (tenant, id);
CREATE INDEX sessions_of_key ON public.sessions USING btree (key_id);
CREATE UNIQUE INDEX sessions_pkey ON public.sessions USING btree (hashed);
CREATE UNIQUE INDEX tenants_name_key ON public.tenants USING btree (name);
CREATE UNIQUE INDEX tenants_pkey ON public.tenants USING btree (id);

CREATE SEQUENCE alert_deliveries_id_seq;
CREATE SEQUENCE api_keys_id_seq;
CREATE SEQUENCE audit_log_id_seq;
CREATE SEQUENCE endings_id_seq;
CREATE SEQUENCE freezes_id_seq;
CREATE SEQUENCE incidents_id_seq;
CREATE SEQUENCE job_ids;
CREATE SEQUENCE notes_id_seq;
CREATE SEQUENCE operations_id_seq;
CREATE SEQUENCE run_numbers;
CREATE SEQUENCE tenants_id_seq;
