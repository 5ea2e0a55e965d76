-- begin, finish, and what ends without having been sent. There is one writer: nothing here needs a lock.
-- `+node`: not by runs_of_node, which would read all of the node's runs for each row.

-- name: begin_runs
-- "Sent once" is recorded before the send. Asked again by the same owner it is the same answer: nothing was sent yet.
UPDATE runs SET begun_at = coalesce(begun_at, {now})
FROM json_each(?2) x
WHERE runs.id = x.value ->> 0 AND runs.token = x.value ->> 1 AND +runs.node = ?1 AND runs.state = 'running'
  AND runs.orders IS NULL
RETURNING runs.id;

-- name: lock_jobs
SELECT id, state FROM jobs WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id;

-- name: finish_done
-- What went well at the first attempt, one run each time: into the ledger. ?1 node, ?2 id, ?3 token, ?4 started_at,
-- ?5 finished_at, ?6 lateness_ms, ?7 duration_ms, ?8 outcome.
INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, token, tries, losses, node, started_at, finished_at,
    lateness_ms, duration_ms, outcome, parent)
SELECT id, tenant, job_id, slot, kind, due_at, 'done', token, tries + 1, losses, node, ?4, ?5, ?6, ?7, ?8, parent
FROM runs WHERE id = ?2 AND token = ?3 AND +node = ?1 AND lane IS NULL
ON CONFLICT DO NOTHING {also};

-- name: also.nothing
/* one-off jobs have no statistics */

-- name: also.stats
/* add_stats counts them */

-- name: note_endings
-- One-off jobs whose firing is over. Their own rows, with all their indexes, are written later, many at once; who reads a
-- one-off job without a scheduled run that lives knows that it has ended.
INSERT INTO endings (jobs, job_ids, ended_at) VALUES (?1, ?2, ?3);

-- name: take_endings
-- The oldest notes, of about ?1 jobs together.
DELETE FROM endings WHERE id IN (
    SELECT f.id FROM (
        SELECT e.id, sum(e.jobs) OVER (ORDER BY e.id) - e.jobs AS before
        FROM (SELECT id, jobs FROM endings ORDER BY id LIMIT 1000) e
    ) f WHERE f.before < ?1
)
RETURNING job_ids, ended_at;

-- name: end_unchanged
-- A job that was never changed had one scheduled run, and that has ended: no look at its runs.
UPDATE jobs SET state = 'ended', ended_at = x.value ->> 1
FROM json_each(?1) x
WHERE jobs.id = x.value ->> 0 AND jobs.version = 1 AND jobs.one_off AND jobs.state = 'active'
RETURNING jobs.id;

-- name: end_jobs
UPDATE jobs SET state = 'ended', ended_at = x.value ->> 1
FROM json_each(?1) x
WHERE jobs.id = x.value ->> 0 AND jobs.one_off AND jobs.state IN ('active', 'paused')
  AND (SELECT 1 FROM runs r WHERE {of_job r jobs.id} AND r.kind IN ('scheduled', 'redrive') ORDER BY r.id LIMIT 1) IS NULL
RETURNING jobs.id;

-- name: any_endings
SELECT 1 AS there FROM endings LIMIT 1;

-- name: scheduled_run
SELECT 1 AS there FROM runs WHERE {of_job runs ?1} AND kind IN ('scheduled', 'redrive') ORDER BY id LIMIT 1;

-- name: finish_record
-- Runs that ended enter the ledger; `delete_runs` takes them out of `runs`. A conflict is a slot that is in the ledger
-- already: an alarm, never an aborted batch.
INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, reason, token, tries, losses, node, started_at,
    finished_at, lateness_ms, duration_ms, outcome, error, attempts, parent)
SELECT r.id, r.tenant, r.job_id, r.slot, r.kind, r.due_at, x.value ->> 3, x.value ->> 4, r.token, x.value ->> 5, x.value ->> 6,
    r.node, x.value ->> 7, x.value ->> 8, x.value ->> 9, x.value ->> 10, x.value ->> 11, x.value ->> 12, x.value ->> 13,
    r.parent
FROM json_each(?1) x JOIN runs r ON r.id = x.value ->> 0
WHERE r.token = x.value ->> 1 AND +r.node = x.value ->> 2 AND r.state = 'running'
ON CONFLICT DO NOTHING
RETURNING id;

-- name: finish_lock
SELECT r.id, r.job_id, r.lane, r.slot, r.kind, r.recurring, r.due_at, r.tries, r.losses, r.token, r.attempts, r.orders
FROM json_each(?1) x JOIN runs r ON r.id = x.value ->> 0
WHERE r.token = x.value ->> 1 AND +r.node = x.value ->> 2 AND r.state = 'running';

-- name: finish_retry
-- Pending again, with what the job asks for now. A paused job's run waits for the resume, unless it was started by hand.
UPDATE runs
SET state = 'pending', node = NULL, begun_at = NULL, orders = NULL, claimed_at = NULL, tries = x.value ->> 2,
    losses = x.value ->> 3, attempts = x.value ->> 4, cursor = x.value ->> 5, requires = j.requires, level = j.level,
    backlog = runs.backlog OR runs.due_at < {now} - 60000,
    parked = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN 'paused' END,
    resume_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN max(x.value ->> 1, {now}) END,
    ready_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN 9223372036854775807
        ELSE max(x.value ->> 1, {now}) END
FROM json_each(?1) x, jobs j
WHERE runs.id = x.value ->> 0 AND j.id = runs.job_id
RETURNING runs.id;

-- name: finish_lookup
-- What became of runs whose fence did not match: in the ledger, or alive with that attempt recorded, means that only the
-- answer was lost.
SELECT x.value ->> 0 AS id, h.token AS recorded, r.attempts
FROM json_each(?1) x
LEFT JOIN history h ON h.tenant = x.value ->> 1 AND h.slot = x.value ->> 2 AND h.id = x.value ->> 0
LEFT JOIN runs r ON r.id = x.value ->> 0;

-- name: add_stats
INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms, last_duration_ms, last_lateness_ms,
    last_status, last_run_id, last_finished_at)
SELECT x.value ->> 0, j.tenant, x.value ->> 1, x.value ->> 2, x.value ->> 3, x.value ->> 4, x.value ->> 5, x.value ->> 6,
    x.value ->> 7, x.value ->> 8, x.value ->> 9
FROM json_each(?1) x JOIN jobs j ON j.id = x.value ->> 0
WHERE true
ON CONFLICT (job_id) DO UPDATE SET
    runs = runs + excluded.runs, failures = failures + excluded.failures, timed = timed + excluded.timed,
    duration_ms = duration_ms + excluded.duration_ms,
    last_duration_ms = coalesce(excluded.last_duration_ms, last_duration_ms),
    last_lateness_ms = coalesce(excluded.last_lateness_ms, last_lateness_ms),
    last_status = excluded.last_status, last_run_id = excluded.last_run_id, last_finished_at = excluded.last_finished_at;

-- name: add_dead_letters
-- Of jobs that are there: nobody can drive those of a deleted one again.
INSERT INTO dead_letters (run_id, tenant, job_id, slot, failed_at)
SELECT x.value ->> 0, x.value ->> 1, x.value ->> 2, x.value ->> 3, x.value ->> 4
FROM json_each(?1) x JOIN jobs j ON j.id = x.value ->> 2
WHERE true
ON CONFLICT DO NOTHING;

-- name: add_logs
INSERT INTO run_logs (run_id, tenant, log, updated_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1) WHERE true
ON CONFLICT (run_id) DO UPDATE SET log = substr(log || excluded.log, -65536), updated_at = excluded.updated_at;

-- name: runs_by_id
SELECT id, tenant, job_id, slot, kind, recurring, lane FROM runs WHERE id IN (SELECT value FROM json_each(?1));

-- name: end_runs
INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, reason, token, tries, losses, finished_at, attempts,
    parent)
SELECT r.id, r.tenant, r.job_id, r.slot, r.kind, r.due_at, x.value ->> 1, x.value ->> 2, r.token, r.tries, r.losses,
    x.value ->> 3, r.attempts, r.parent
FROM json_each(?1) x JOIN runs r ON r.id = x.value ->> 0
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: release_lanes
-- The oldest that waits in each lane may be claimed now.
UPDATE runs
SET parked = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN 'paused' END,
    resume_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN {now} END,
    ready_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN 9223372036854775807 ELSE {now} END
FROM jobs j
WHERE j.id = runs.job_id AND runs.parked = 'lane' AND runs.id IN (
    SELECT (SELECT id FROM runs WHERE lane = l.value AND parked = 'lane' ORDER BY due_at LIMIT 1) FROM json_each(?1) l
);
