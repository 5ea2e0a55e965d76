-- A sqlite database as the release before wrote it (11 migrations): jobs of all kinds of schedule and target; runs that wait,
-- run, are tried again, stand in lanes, are paused; history, notes, dead letters, keys, idempotency. See test_older_database.py.
BEGIN TRANSACTION;
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
INSERT INTO "api_keys" VALUES(1,1,'ci','write','hash-of-a-key','otd_abc',1700000155000,NULL,NULL);
CREATE TABLE dead_letters (  -- the open ones; the ledger itself never changes
    run_id    TEXT PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    job_id    INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    failed_at INTEGER NOT NULL
);
INSERT INTO "dead_letters" VALUES('12-1700000030000',1,12,1700000030000,1700000031000);
CREATE TABLE duties (
    name     TEXT PRIMARY KEY,
    node     TEXT NOT NULL,
    taken_at INTEGER NOT NULL
);
CREATE TABLE endings (
    id       INTEGER PRIMARY KEY,
    jobs     INTEGER NOT NULL,  -- how many
    job_ids  TEXT NOT NULL,  -- a JSON array
    ended_at INTEGER NOT NULL
);
INSERT INTO "endings" VALUES(1,1,'[19]',1700000155000);
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
INSERT INTO "history" VALUES('12-1700000030000',1,12,1700000030000,NULL,NULL,'scheduled',1700000030000,'failed','not_retryable',1,1,0,'n1',1700000031000,1700000031000,1,4,'{"kind":"refused"}','may not',NULL,NULL);
INSERT INTO "history" VALUES('13-1700000030000',1,13,1700000030000,NULL,NULL,'scheduled',1700000030000,'done',NULL,1,1,0,'n1',1700000031000,1700000031000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('14-1700000031000',1,14,1700000031000,NULL,NULL,'scheduled',1700000031000,'done',NULL,1,1,0,'n1',1700000031000,1700000031000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('10-1700000060000',1,10,1700000060000,NULL,NULL,'scheduled',1700000060000,'done',NULL,1,1,0,'n1',1700000061000,1700000061000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('15-1700000060000',1,15,1700000060000,NULL,NULL,'scheduled',1700000060000,'done',NULL,1,1,0,'n1',1700000061000,1700000061000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('16-1700000060000',1,16,1700000060000,NULL,NULL,'scheduled',1700000060000,'done',NULL,1,1,0,'n1',1700000061000,1700000061000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('2-1700000060000',1,2,1700000060000,NULL,1,'scheduled',1700000060000,'skipped','coalesced',0,0,0,NULL,NULL,1700000121000,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('7-1700000120000',1,7,1700000120000,NULL,1,'scheduled',1700000120000,'skipped','overlap',0,0,0,NULL,NULL,1700000121000,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('10-1700000120000',1,10,1700000120000,NULL,NULL,'scheduled',1700000120000,'done',NULL,1,1,0,'n1',1700000121000,1700000121000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('15-1700000120000',1,15,1700000120000,NULL,NULL,'scheduled',1700000120000,'done',NULL,1,1,0,'n1',1700000121000,1700000121000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
INSERT INTO "history" VALUES('15-1700000180000',1,15,1700000180000,NULL,NULL,'scheduled',1700000180000,'cancelled','deleted',0,0,0,NULL,NULL,1700000150000,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "history" VALUES('19-1700000155000',1,19,1700000155000,NULL,NULL,'scheduled',1700000155000,'done',NULL,1,1,0,'n1',1700000155000,1700000155000,1,4,'{"kind":"ok"}',NULL,NULL,NULL);
CREATE TABLE idempotency (
    tenant      INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result      TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
);
INSERT INTO "idempotency" VALUES(1,'make-far','v1:abc','4',1700000000000);
INSERT INTO "idempotency" VALUES(1,'run-params','v1:def','{"id":"17-1700000150000-m1","job_id":17,"key":"params","kind":"manual","scheduled_for":"2023-11-14T22:15:50.000Z","due_at":"2023-11-14T22:15:50.000Z","status":"PENDING","reason":null,"attempt":0,"tries":0,"losses":0,"node":null,"started_at":null,"finished_at":null,"lateness_ms":null,"duration_ms":null,"outcome":null,"error":null,"attempts":[],"until":null,"slots":null,"params":{"a":2}}',1700000150000);
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
INSERT INTO "job_stats" VALUES(10,1,2,0,2,8,4,1,'done','10-1700000120000',1700000121000);
INSERT INTO "job_stats" VALUES(16,1,1,0,1,4,4,1,'done','16-1700000060000',1700000061000);
CREATE TABLE job_tags (
    tenant INTEGER NOT NULL,
    tag    TEXT NOT NULL,
    job_id INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, job_id)
) WITHOUT ROWID;
INSERT INTO "job_tags" VALUES(1,'a',1);
INSERT INTO "job_tags" VALUES(1,'b',1);
CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY,  -- from sequences, never used twice: run ids are made of it
    tenant        INTEGER NOT NULL,
    key           TEXT,
    name          TEXT,
    key_search    TEXT,  -- case-folded copies, cut to 200 characters, for the prefix filter `q`
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
    source        TEXT,  -- the jobs file that owns it
    source_paused INTEGER,  -- `paused` as that file last had it: a pause by hand outlives the next load
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
, origin TEXT, pause_note TEXT, pause_until INTEGER, owner TEXT);
INSERT INTO "jobs" VALUES(1,1,'cron',NULL,'cron',NULL,'{"key":"cron","name":null,"schedule":{"cron":"0 * * * *","tz":"Europe/Berlin"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":["a","b"],"paused":false,"owner":"ann"}',1,'active',1,'webhook','webhook','cron',0,1700000000000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,'ann');
INSERT INTO "jobs" VALUES(2,1,'every',NULL,'every',NULL,'{"key":"every","name":null,"schedule":{"every":"1m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"5s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,2,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(3,1,'daily',NULL,'daily',NULL,'{"key":"daily","name":null,"schedule":{"cron":"30 0 6 * * *"},"target":{"type":"function","function":"reports:daily"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'function:reports','function','cron',0,1700000000000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(4,1,'far',NULL,'far',NULL,'{"key":"far","name":null,"schedule":{"at":"2023-12-14T22:13:20.000Z"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','at',1,1700000000000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(5,1,'delay',NULL,'delay',NULL,'{"key":"delay","name":null,"schedule":{"in":"10m"},"target":{"type":"command","command":"backup"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'command:backup','command','in',1,1700000000000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(6,1,'once',NULL,'once',NULL,'{"key":"once","name":null,"schedule":{"every":"1m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_most_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,2,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(7,1,'skip',NULL,'skip',NULL,'{"key":"skip","name":null,"schedule":{"every":"1m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"skip","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,2,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(8,1,'queue',NULL,'queue',NULL,'{"key":"queue","name":null,"schedule":{"every":"1m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"queue","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,2,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(9,1,'replace',NULL,'replace',NULL,'{"key":"replace","name":null,"schedule":{"every":"1m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"replace","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,2,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(10,1,'paused',NULL,'paused',NULL,'{"key":"paused","name":null,"schedule":{"every":"1m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{"x":1},"tags":[],"paused":true}',2,'paused',2,'webhook','webhook','every',0,1700000000000,1700000120000,2,1700000121000,NULL,NULL,NULL,NULL,1700000000000,1700000121000,NULL,'holiday',1700864000000,NULL);
INSERT INTO "jobs" VALUES(11,1,'retries',NULL,'retries',NULL,'{"key":"retries","name":null,"schedule":{"at":"2023-11-14T22:13:50.000Z"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1h","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','at',1,1700000000000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(12,1,'dead',NULL,'dead',NULL,'{"key":"dead","name":null,"schedule":{"at":"2023-11-14T22:13:50.000Z"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'ended',1,'webhook','webhook','at',1,1700000000000,NULL,0,NULL,1700000031000,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(13,1,'settled',NULL,'settled',NULL,'{"key":"settled","name":null,"schedule":{"at":"2023-11-14T22:13:50.000Z"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'ended',1,'webhook','webhook','at',1,1700000000000,NULL,0,NULL,1700000031000,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(14,1,'unsettled',NULL,'unsettled',NULL,'{"key":"unsettled","name":null,"schedule":{"at":"2023-11-14T22:13:51.000Z"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'ended',1,'webhook','webhook','at',1,1700000000000,NULL,0,NULL,1700000031000,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(16,1,'counted',NULL,'counted',NULL,'{"key":"counted","name":null,"schedule":{"every":"1m","count":5},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,2,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(17,1,'params',NULL,'params',NULL,'{"key":"params","name":null,"schedule":{"every":"1h"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{"a":1},"tags":[],"paused":false}',1,'active',2,'webhook','webhook','every',0,1700000000000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(18,1,'filed',NULL,'filed',NULL,'{"key":"filed","name":null,"schedule":{"every":"2m"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','every',0,1700000000000,1700000120000,1,NULL,NULL,NULL,'jobs.json',0,1700000000000,1700000000000,NULL,NULL,NULL,NULL);
INSERT INTO "jobs" VALUES(19,1,'last',NULL,'last',NULL,'{"key":"last","name":null,"schedule":{"at":"2023-11-14T22:15:55.000Z"},"target":{"type":"webhook","url":"https://example.com/hook"},"policy":{"timeout":null,"retry":{"attempts":3,"backoff":"1s","factor":2.0,"max":"5m","max_age":null},"overlap":"allow","catch_up":"latest","catch_up_limit":100,"delivery":"at_least_once","jitter":"0s","expires_in":null},"params":{},"tags":[],"paused":false}',1,'active',1,'webhook','webhook','at',1,1700000150000,NULL,0,NULL,NULL,NULL,NULL,NULL,1700000150000,1700000150000,NULL,NULL,NULL,NULL);
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
INSERT INTO "live_logs" VALUES('8-1700000060000',1,1,'so far
',1700000061000);
CREATE TABLE meta (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    breaking   INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
);
INSERT INTO "meta" VALUES(1,'jobs',0,1700000000000);
INSERT INTO "meta" VALUES(2,'runs',0,1700000000000);
INSERT INTO "meta" VALUES(3,'endings',0,1700000000000);
INSERT INTO "meta" VALUES(4,'jobs_listed',0,1700000000000);
INSERT INTO "meta" VALUES(5,'fewer_indexes_of_runs',0,1700000000000);
INSERT INTO "meta" VALUES(6,'endings_unpacked',0,1700000000000);
INSERT INTO "meta" VALUES(7,'live_logs',0,1700000000000);
INSERT INTO "meta" VALUES(8,'trust',0,1700000000000);
INSERT INTO "meta" VALUES(9,'lineage',0,1700000000000);
INSERT INTO "meta" VALUES(10,'origins',0,1700000000000);
INSERT INTO "meta" VALUES(11,'pauses',0,1700000000000);
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
, binding TEXT, exposed INTEGER);
INSERT INTO "nodes" VALUES('n1','n1','h',1,'0',2,'["executor"]','["webhook","function:reports","command:backup"]',10,0,1700000000000,1700000000000,NULL,0,0,0,NULL,NULL,0);
CREATE TABLE run_logs (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    log        TEXT NOT NULL,
    updated_at INTEGER NOT NULL
);
INSERT INTO "run_logs" VALUES('12-1700000030000',1,'printed
',1700000031000);
CREATE TABLE run_params (
    run_id     TEXT PRIMARY KEY,
    tenant     INTEGER NOT NULL,
    params     TEXT NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "run_params" VALUES('17-1700000150000-m1',1,'{"a":2}',1700000150000);
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
INSERT INTO "runs" VALUES('1-1700002800000',1,1,1700002800000,'scheduled',1,1,'pending',1700002800000,1700002798000,NULL,NULL,'webhook',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('2-1700000120000',1,2,1700000120000,'scheduled',0,1,'running',1700000124628,1700000062641,NULL,NULL,'webhook',0,1,NULL,0,NULL,'n1',1,0,0,NULL,1700000121000,1700000121000,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('3-1700028030000',1,3,1700028030000,'scheduled',1,1,'pending',1700028030000,1700028028000,NULL,NULL,'function:reports',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('4-1702592000000',1,4,1702592000000,'scheduled',1,0,'pending',1702592000000,1702591998000,NULL,NULL,'webhook',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('5-1700000600000',1,5,1700000600000,'scheduled',1,0,'pending',1700000600000,1700000598000,NULL,NULL,'command:backup',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('6-1700000060000',1,6,1700000060000,'scheduled',0,1,'running',1700000060000,1700000058000,NULL,NULL,'webhook',0,1,NULL,1,1700000061000,'n1',1,0,0,NULL,1700000061000,1700000061000,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('7-1700000060000',1,7,1700000060000,'scheduled',0,1,'running',1700000060000,1700000060000,NULL,NULL,'webhook',0,1,7,0,NULL,'n1',1,0,0,NULL,1700000061000,1700000061000,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('8-1700000060000',1,8,1700000060000,'scheduled',0,1,'running',1700000060000,1700000060000,NULL,NULL,'webhook',0,1,8,0,NULL,'n1',1,0,0,NULL,1700000061000,1700000061000,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('9-1700000060000',1,9,1700000060000,'scheduled',0,1,'running',1700000060000,1700000060000,NULL,NULL,'webhook',0,1,9,0,NULL,'n1',1,0,0,'replace 9-1700000120000',1700000061000,1700000061000,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('11-1700000030000',1,11,1700000030000,'scheduled',0,0,'pending',1700000030000,1700000331000,NULL,NULL,'webhook',0,1,NULL,0,NULL,NULL,1,1,0,NULL,1700000031000,NULL,'[{"attempt":1,"node":"n1","started_at":1700000031000,"finished_at":1700000031000,"outcome":"error","error":"boom"}]',NULL,0,1700000000000);
INSERT INTO "runs" VALUES('17-1700003600000',1,17,1700003600000,'scheduled',1,1,'pending',1700003600000,1700003598000,NULL,NULL,'webhook',0,2,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('18-1700000120000',1,18,1700000120000,'scheduled',0,1,'running',1700000120000,1700000118000,NULL,NULL,'webhook',0,1,NULL,0,NULL,'n1',1,0,0,NULL,1700000121000,1700000121000,NULL,NULL,0,1700000000000);
INSERT INTO "runs" VALUES('6-1700000120000',1,6,1700000120000,'scheduled',0,1,'running',1700000120000,1700000118000,NULL,NULL,'webhook',0,1,NULL,1,NULL,'n1',1,0,0,NULL,1700000121000,1700000121000,NULL,NULL,0,1700000061000);
INSERT INTO "runs" VALUES('16-1700000120000',1,16,1700000120000,'scheduled',0,1,'running',1700000120000,1700000118000,NULL,NULL,'webhook',0,1,NULL,0,NULL,'n1',1,0,0,NULL,1700000121000,1700000121000,NULL,NULL,0,1700000061000);
INSERT INTO "runs" VALUES('8-1700000120000',1,8,1700000120000,'scheduled',0,1,'pending',1700000120000,9223372036854775807,'lane',NULL,'webhook',0,1,8,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000061000);
INSERT INTO "runs" VALUES('9-1700000120000',1,9,1700000120000,'scheduled',0,1,'pending',1700000120000,9223372036854775807,'lane',NULL,'webhook',0,1,9,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000061000);
INSERT INTO "runs" VALUES('2-1700000180000',1,2,1700000180000,'scheduled',1,1,'pending',1700000180397,1700000178397,NULL,NULL,'webhook',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('18-1700000240000',1,18,1700000240000,'scheduled',1,1,'pending',1700000240000,1700000238000,NULL,NULL,'webhook',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('6-1700000180000',1,6,1700000180000,'scheduled',1,1,'pending',1700000180000,1700000178000,NULL,NULL,'webhook',0,1,NULL,1,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('10-1700000180000',1,10,1700000180000,'scheduled',1,1,'pending',1700000180000,9223372036854775807,'paused',1700000178000,'webhook',0,2,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('16-1700000180000',1,16,1700000180000,'scheduled',1,1,'pending',1700000180000,1700000178000,NULL,NULL,'webhook',0,1,NULL,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('7-1700000180000',1,7,1700000180000,'scheduled',1,1,'pending',1700000180000,1700000180000,NULL,NULL,'webhook',0,1,7,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('8-1700000180000',1,8,1700000180000,'scheduled',1,1,'pending',1700000180000,1700000180000,NULL,NULL,'webhook',0,1,8,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('9-1700000180000',1,9,1700000180000,'scheduled',1,1,'pending',1700000180000,1700000180000,NULL,NULL,'webhook',0,1,9,0,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,0,1700000121000);
INSERT INTO "runs" VALUES('17-1700000150000-m1',1,17,1700000150000,'manual',0,1,'running',1700000150000,1700000150000,NULL,NULL,'webhook',0,2,NULL,0,NULL,'n1',1,0,0,NULL,1700000155000,1700000155000,NULL,NULL,1,1700000150000);
INSERT INTO "runs" VALUES('16-1700000060000-b2',1,16,1700000060000,'backfill',0,1,'running',1700000150000,1700000150000,NULL,NULL,'webhook',1,1,NULL,0,NULL,'n1',1,0,0,NULL,1700000155000,1700000155000,NULL,NULL,2,1700000150000);
CREATE TABLE sequences (  -- what PostgreSQL has CREATE SEQUENCE for
    name TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "sequences" VALUES('job_ids',19);
INSERT INTO "sequences" VALUES('run_numbers',2);
CREATE TABLE sessions (
    hashed     TEXT PRIMARY KEY,
    key_id     INTEGER NOT NULL REFERENCES api_keys (id),
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
);
INSERT INTO "sessions" VALUES('hash-of-a-session',1,1700000155000,1700000155000);
CREATE TABLE tenants (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);
INSERT INTO "tenants" VALUES(1,'default',0);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant, id);
CREATE UNIQUE INDEX jobs_key ON jobs (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_by_key_search ON jobs (tenant, key_search, id) WHERE key_search IS NOT NULL;
CREATE INDEX jobs_by_name_search ON jobs (tenant, name_search, id) WHERE name_search IS NOT NULL;
CREATE INDEX jobs_by_source ON jobs (tenant, source, id) WHERE source IS NOT NULL;
CREATE INDEX jobs_ended_one_off ON jobs (ended_at, id) WHERE state = 'ended' AND one_off;
CREATE INDEX job_tags_of_job ON job_tags (job_id);
CREATE INDEX idempotency_age ON idempotency (created_at);
CREATE INDEX runs_free ON runs (requires, backlog, ready_at)
    WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring);
CREATE INDEX runs_cursors ON runs (requires, backlog, ready_at)
    WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring;
CREATE INDEX runs_lanes ON runs (requires, backlog, ready_at) WHERE state = 'pending' AND lane IS NOT NULL;
CREATE UNIQUE INDEX runs_one_cursor ON runs (job_id) WHERE cursor;
CREATE INDEX runs_of_node ON runs (node) WHERE state = 'running';
CREATE INDEX runs_ordered ON runs (node) WHERE orders IS NOT NULL;
CREATE UNIQUE INDEX runs_lane_holder ON runs (lane) WHERE state = 'running' AND lane IS NOT NULL;
CREATE INDEX runs_waiting ON runs (lane, due_at) WHERE parked = 'lane';
CREATE INDEX history_of_job ON history (job_id, slot, id);
CREATE INDEX history_not_done ON history (tenant, status, slot, id) WHERE status <> 'done';
CREATE INDEX history_of_job_not_done ON history (job_id, status, slot, id) WHERE status <> 'done';
CREATE INDEX run_logs_age ON run_logs (updated_at);
CREATE INDEX dead_letters_newest ON dead_letters (tenant, failed_at, run_id);
CREATE INDEX dead_letters_of_job ON dead_letters (job_id, failed_at, run_id);
CREATE INDEX dead_letters_age ON dead_letters (slot);
CREATE INDEX jobs_listed ON jobs (tenant, state, target_type, schedule_kind, id);
CREATE INDEX runs_next ON runs (tenant, slot, id) WHERE cursor AND parked IS NULL AND due_at = slot;
CREATE INDEX runs_jittered ON runs (tenant, due_at, id) WHERE cursor AND parked IS NULL AND due_at <> slot;
CREATE INDEX runs_listed ON runs (tenant, slot, id)
    WHERE state = 'pending' AND NOT (cursor AND parked IS NULL AND due_at = slot);
CREATE INDEX sessions_of_key ON sessions (key_id);
CREATE INDEX jobs_paused_until ON jobs (pause_until) WHERE state = 'paused' AND pause_until IS NOT NULL;
CREATE INDEX jobs_by_owner ON jobs (tenant, owner, id) WHERE owner IS NOT NULL;
CREATE INDEX run_params_age ON run_params (created_at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('tenants',2);
INSERT INTO "sqlite_sequence" VALUES('api_keys',1);
COMMIT;
