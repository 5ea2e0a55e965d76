-- breaking: no
-- Alerts: incidents, one for each condition of a job or node while it lasts, and the messages about them, until they are
-- delivered. And how many runs of jobs with an objective started on time, by day. Times are ms since the epoch.

CREATE TABLE incidents (
    id         INTEGER PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    subject    TEXT NOT NULL,  -- 'job 17', 'node web-1'
    condition  TEXT NOT NULL,
    job_id     INTEGER,
    title      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    cause      TEXT NOT NULL,
    occurrence TEXT,  -- what it was last found at: the id of a run or node
    output     TEXT,
    limit_ms   INTEGER,
    ways       TEXT NOT NULL,  -- JSON: which channels are told, and how
    count      INTEGER NOT NULL,
    opened_at  INTEGER NOT NULL,
    last_at    INTEGER NOT NULL,
    alerted_at INTEGER,
    closed_at  INTEGER
);
CREATE UNIQUE INDEX incidents_open ON incidents (tenant, subject, condition) WHERE closed_at IS NULL;
CREATE INDEX incidents_closed ON incidents (tenant, subject, condition, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX incidents_newest ON incidents (tenant, opened_at, id);
CREATE INDEX incidents_of_job ON incidents (tenant, job_id, opened_at, id) WHERE job_id IS NOT NULL;
CREATE INDEX incidents_age ON incidents (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE alert_deliveries (
    id          INTEGER PRIMARY KEY,
    tenant      INTEGER NOT NULL,
    incident_id INTEGER NOT NULL,
    channel     TEXT NOT NULL,
    event       TEXT NOT NULL,  -- opened | repeated | recovered
    created_at  INTEGER NOT NULL,
    not_before  INTEGER NOT NULL,
    quiet       INTEGER NOT NULL,  -- it waits for the end of quiet hours
    tries       INTEGER NOT NULL,
    error       TEXT,
    taken_by    TEXT,
    taken_until INTEGER,
    sent_at     INTEGER,
    lead        INTEGER,  -- of those that one message told: the first
    failed_at   INTEGER
);
CREATE INDEX alert_deliveries_waiting ON alert_deliveries (channel, not_before) WHERE sent_at IS NULL AND failed_at IS NULL;
CREATE INDEX alert_deliveries_sent ON alert_deliveries (channel, sent_at) WHERE lead;
CREATE INDEX alert_deliveries_of_incident ON alert_deliveries (incident_id);

CREATE TABLE objective_days (
    job_id  INTEGER NOT NULL,
    day     INTEGER NOT NULL,  -- its first ms, UTC
    late_ms INTEGER NOT NULL,  -- the objective that it was counted for
    runs    INTEGER NOT NULL,
    on_time INTEGER NOT NULL,
    PRIMARY KEY (job_id, day)
);

-- Jobs that have alerts or an objective of their own, found without a column that every create would have to write.
CREATE INDEX jobs_alerting ON jobs (id) WHERE instr(spec, '"alerts":') > 0;
CREATE INDEX jobs_with_objective ON jobs (id) WHERE instr(spec, '"objective":') > 0;
