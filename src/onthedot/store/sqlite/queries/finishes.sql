-- begin, finish, and what ends without having been sent. There is one writer: nothing here needs a lock.
-- `+node`: not by runs_of_node, which would read all of the node's runs for each row.

-- name: begin_runs
-- "Sent once" is recorded before the send. Asked again by the same owner it is the same answer: nothing was sent yet.
UPDATE runs SET begun_at = coalesce(begun_at, {now})
FROM {rows Fence}
WHERE runs.id = x.id AND runs.token = x.token AND +runs.node = ?1 AND runs.state = 'running'
  AND runs.orders IS NULL
RETURNING runs.id;

-- name: lock_jobs
SELECT id, state FROM jobs WHERE id IN (SELECT value FROM json_each(?1)) ORDER BY id;

-- part: ledger
-- What the ledger gets of a run that went well.
id, tenant, job_id, slot, kind, due_at, token, losses, parent, claimed_at

-- name: finish_done
-- What went well at the first attempt, one run each time: into the ledger. ?1 node.
INSERT INTO history (status, tries, node, started_at, finished_at, lateness_ms, duration_ms, outcome, {part ledger})
SELECT 'done', tries + 1, node, {DoneRun.started_at}, {DoneRun.finished_at}, {DoneRun.lateness_ms}, {DoneRun.duration_ms},
    {DoneRun.outcome}, {part ledger}
FROM runs WHERE id = {DoneRun.id} AND token = {DoneRun.token} AND +node = ?1 AND lane IS NULL
ON CONFLICT DO NOTHING {also};

-- name: finish_one
/* finish_done: it is one run each time */

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
-- Jobs that were never changed. The note alone is not enough: a manual run that was redriven left it before the firing.
UPDATE jobs SET state = 'ended', ended_at = x.ended_at FROM {rows EndedJob}
WHERE jobs.id = x.id AND jobs.version = 1 AND jobs.one_off AND jobs.state = 'active'
  AND (SELECT 1 FROM runs r WHERE {of_job r jobs.id} AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL
RETURNING jobs.id;

-- name: end_jobs
UPDATE jobs SET state = 'ended', ended_at = x.ended_at FROM {rows EndedJob}
WHERE jobs.id = x.id AND jobs.one_off AND jobs.state IN ('active', 'paused')
  AND (SELECT 1 FROM runs r WHERE {of_job r jobs.id} AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL
RETURNING jobs.id;

-- name: any_endings
SELECT 1 AS there FROM endings LIMIT 1;

-- name: scheduled_run
SELECT 1 AS there FROM runs WHERE {of_job runs ?1} AND kind IN {FIRINGS} ORDER BY id LIMIT 1;

-- name: finish_record
-- Runs that ended enter the ledger; `delete_runs` takes them out of `runs`. Who has an open one is how it is open. A conflict is a slot that is in the ledger
-- already: an alarm, never an aborted batch.
INSERT INTO history (tenant, job_id, slot, kind, due_at, parent, claimed_at, {columns EndedRun})
SELECT r.tenant, r.job_id, r.slot, r.kind, r.due_at, r.parent, r.claimed_at, {columns EndedRun x node=r.node}
FROM {rows EndedRun} JOIN runs r ON r.id = x.id
WHERE r.token = x.token AND coalesce(r.node, r.open) = x.node
ON CONFLICT DO NOTHING
RETURNING id;

-- name: finish_lock
SELECT r.id, r.job_id, r.lane, r.group_key, r.slot, r.kind, r.recurring, r.due_at, r.tries, r.losses, r.token, r.attempts,
    r.orders, r.claimed_at
FROM {rows OwnedRun} JOIN runs r ON r.id = x.id
WHERE r.token = x.token AND coalesce(r.node, r.open) = x.node;

-- name: finish_retry
-- Pending again, with what the job asks for now. A paused job's run waits for the resume, unless it was started by hand.
-- Only what was recalled can have been claimed by another spec: that of the others is not read.
UPDATE runs
SET state = 'pending', node = NULL, begun_at = NULL, orders = NULL, claimed_at = NULL, work = NULL, open = NULL, progress = NULL,
    open_until = NULL, waiting = NULL, waiting_until = NULL, tries = x.tries, losses = x.losses,
    waiting_since = CASE WHEN x.tries = runs.tries THEN runs.waiting_since END,
    attempts = x.attempts, cursor = x.cursor, requires = j.requires,
    level = CASE WHEN runs.kind = 'chain' THEN max(runs.level, j.level) ELSE j.level END,
    at_most_once = CASE WHEN runs.orders = 'recall' THEN (j.spec ->> '$.policy.delivery') IS 'at_most_once'
        ELSE runs.at_most_once END,
    backlog = runs.backlog OR runs.due_at < {now} - {BACKLOG_MS},
    parked = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN 'paused' END,
    resume_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN max(x.ready_at, {now}) END,
    ready_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN {NEVER} ELSE max(x.ready_at, {now}) END
FROM {rows PendingAgain}, jobs j
WHERE runs.id = x.id AND j.id = runs.job_id
RETURNING runs.id;

-- name: finish_lookup
-- What became of runs whose fence did not match: in the ledger, or alive with that attempt recorded, means that only the
-- answer was lost.
SELECT x.id, h.token AS recorded, r.attempts, r.token, r.open
FROM {rows UnmatchedRun}
LEFT JOIN history h ON h.tenant = x.tenant AND h.slot = x.slot AND h.id = x.id
LEFT JOIN runs r ON r.id = x.id;

-- name: add_refused
-- What a node reported of an attempt that is another's by now: each once, however often it is offered.
INSERT INTO refused_results ({columns RefusedRow}, refused_at)
SELECT {columns RefusedRow x}, {now} FROM {rows RefusedRow} WHERE true
ON CONFLICT DO NOTHING;

-- name: refused_of
SELECT token, node, started_at, finished_at, outcome, error, refused_at FROM refused_results
WHERE run_id = ?2 AND tenant = ?1 ORDER BY refused_at, token, node LIMIT 20;

-- name: add_stats
-- Also of a job that was deleted: it may come back.
INSERT INTO job_stats (tenant, {columns EndedRuns})
SELECT coalesce(j.tenant, d.tenant), {columns EndedRuns x}
FROM {rows EndedRuns} LEFT JOIN jobs j ON j.id = x.job_id LEFT JOIN deleted_jobs d ON d.id = x.job_id
WHERE j.id IS NOT NULL OR d.id IS NOT NULL
ON CONFLICT (job_id) DO UPDATE SET
    runs = runs + excluded.runs, failures = failures + excluded.failures, timed = timed + excluded.timed,
    duration_ms = duration_ms + excluded.duration_ms,
    last_duration_ms = coalesce(excluded.last_duration_ms, last_duration_ms),
    last_lateness_ms = coalesce(excluded.last_lateness_ms, last_lateness_ms),
    last_status = excluded.last_status, last_run_id = excluded.last_run_id, last_finished_at = excluded.last_finished_at;

-- name: add_dead_letters
-- Of jobs that are there: nobody can drive those of a deleted one again.
INSERT INTO dead_letters ({columns DeadLetter})
SELECT {columns DeadLetter x} FROM {rows DeadLetter} JOIN jobs j ON j.id = x.job_id
WHERE true
ON CONFLICT DO NOTHING;

-- name: keep_late_dead_letters
-- Of jobs that were deleted meanwhile, should they come back.
INSERT INTO deleted_dead_letters ({columns DeadLetter})
SELECT {columns DeadLetter x} FROM {rows DeadLetter} JOIN deleted_jobs d ON d.id = x.job_id
WHERE true;

-- name: add_logs
INSERT INTO run_logs ({columns AttemptLog}) SELECT {columns AttemptLog x} FROM {rows AttemptLog} WHERE true
ON CONFLICT (run_id) DO UPDATE SET log = substr(log || excluded.log, -{LOG_LIMIT}), updated_at = excluded.updated_at;

-- name: runs_by_id
SELECT id, tenant, job_id, slot, kind, recurring, lane, group_key FROM runs WHERE id IN (SELECT value FROM json_each(?1));

-- name: end_runs
INSERT INTO history (tenant, job_id, slot, kind, due_at, token, tries, losses, attempts, parent, {columns Ending})
SELECT r.tenant, r.job_id, r.slot, r.kind, r.due_at, r.token, r.tries, r.losses, r.attempts, r.parent, {columns Ending x}
FROM {rows Ending} JOIN runs r ON r.id = x.id
WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: release_lanes
-- The oldest that waits in each lane may be claimed now.
UPDATE runs
SET parked = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN 'paused' END,
    resume_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN {now} END,
    ready_at = CASE WHEN j.state = 'paused' AND runs.kind <> 'manual' THEN {NEVER} ELSE {now} END
FROM jobs j
WHERE j.id = runs.job_id AND runs.parked = 'lane' AND runs.id IN (
    SELECT (SELECT id FROM runs WHERE lane = l.value AND parked = 'lane' ORDER BY due_at LIMIT 1) FROM json_each(?1) l
);
