-- begin, finish, and what ends without having been sent.

-- name: begin_runs
-- "Sent once" is recorded before the send. Asked again by the same owner it is the same answer: nothing was sent yet.
UPDATE runs r SET begun_at = coalesce(r.begun_at, {now})
FROM {rows Fence}
WHERE r.id = x.id AND r.token = x.token AND r.node || '' = $1 AND r.orders IS NULL
RETURNING r.id;

-- name: lock_jobs
SELECT id, state FROM jobs WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- part: ledger
-- What the ledger gets of a run that went well.
id, tenant, job_id, slot, kind, due_at, token, losses, parent, claimed_at, started_at, finished_at, lateness_ms, duration_ms,
    outcome

-- name: finish_done
-- What went well at the first attempt: the whole of finish in one statement that is its own transaction. $1 node. Whatever
-- matches nothing here (not ours, recorded before, in a lane) is left to the statements below, and so is the whole batch if
-- one of its slots is in the ledger already: without ON CONFLICT, which looks before it writes and confirms after, a run
-- costs 3 of 13 µs less. `ids` comes only if not all of them matched.
WITH gone AS (
    DELETE FROM runs r USING {rows DoneRun}
    WHERE r.id = x.id AND r.token = x.token AND r.node || '' = $1 AND r.lane IS NULL
    RETURNING r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.token, r.tries, r.losses, r.parent,
        r.claimed_at, x.started_at, x.finished_at, x.lateness_ms, x.duration_ms, x.outcome
), kept AS (
    INSERT INTO history (status, node, tries, {part ledger})
    SELECT 'done', $1, tries + 1, {part ledger} FROM gone
), noted AS (
    INSERT INTO endings (jobs, job_ids, ended_at)
    SELECT count(*), array_agg(job_id), max(finished_at) FROM gone WHERE NOT recurring AND kind IN {FIRINGS}
    HAVING count(*) > 0
) {also}
SELECT CASE WHEN g.n < cardinality({DoneRun.id}[]) THEN ARRAY(SELECT id FROM gone) END AS ids
FROM (SELECT count(*) AS n FROM gone) g;

-- name: finish_one
-- The lonely run: finish_done without arrays and sums, 100 of 590 µs less for the server. No row: it matched nothing.
WITH gone AS (
    DELETE FROM runs r
    WHERE r.id = {DoneRun.id} AND r.token = {DoneRun.token} AND r.node || '' = $1 AND r.lane IS NULL
    RETURNING r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.token, r.tries, r.losses, r.parent,
        r.claimed_at, {DoneRun.started_at} AS started_at, {DoneRun.finished_at} AS finished_at, {DoneRun.lateness_ms} AS lateness_ms,
        {DoneRun.duration_ms} AS duration_ms, {DoneRun.outcome} AS outcome
), kept AS (
    INSERT INTO history (status, node, tries, {part ledger})
    SELECT 'done', $1, tries + 1, {part ledger} FROM gone
), noted AS (
    INSERT INTO endings (jobs, job_ids, ended_at)
    SELECT 1, ARRAY[job_id], finished_at FROM gone WHERE NOT recurring AND kind IN {FIRINGS}
) {also}
SELECT id FROM gone;

-- name: also.nothing
/* one-off jobs have no statistics */

-- name: also.stats
, counted AS (
    INSERT INTO job_stats AS s (job_id, tenant, runs, failures, timed, duration_ms, last_duration_ms, last_lateness_ms,
        last_status, last_run_id, last_finished_at)
    SELECT g.job_id, coalesce(j.tenant, d.tenant), g.runs, 0, g.timed, g.duration_ms, g.last_duration_ms,
        g.last_lateness_ms, 'done', g.last_run_id, g.last_finished_at
    FROM (
        SELECT job_id, count(*) AS runs, count(duration_ms) AS timed, coalesce(sum(duration_ms), 0)::bigint AS duration_ms,
            (array_agg(duration_ms ORDER BY finished_at DESC) FILTER (WHERE duration_ms IS NOT NULL))[1]
                AS last_duration_ms,
            (array_agg(lateness_ms ORDER BY finished_at DESC) FILTER (WHERE lateness_ms IS NOT NULL))[1]
                AS last_lateness_ms,
            (array_agg(id ORDER BY finished_at DESC))[1] AS last_run_id, max(finished_at) AS last_finished_at
        FROM gone WHERE recurring GROUP BY job_id
    ) g LEFT JOIN jobs j ON j.id = g.job_id LEFT JOIN deleted_jobs d ON d.id = g.job_id
    WHERE j.id IS NOT NULL OR d.id IS NOT NULL
    ORDER BY g.job_id
    ON CONFLICT (job_id) DO UPDATE SET
        runs = s.runs + excluded.runs, timed = s.timed + excluded.timed, duration_ms = s.duration_ms + excluded.duration_ms,
        last_duration_ms = coalesce(excluded.last_duration_ms, s.last_duration_ms),
        last_lateness_ms = coalesce(excluded.last_lateness_ms, s.last_lateness_ms),
        last_status = excluded.last_status, last_run_id = excluded.last_run_id,
        last_finished_at = excluded.last_finished_at
)

-- name: note_endings
-- One-off jobs whose firing is over. Their own rows, with all their indexes, are written later, many at once; who reads a
-- one-off job without a scheduled run that lives knows that it has ended.
INSERT INTO endings (jobs, job_ids, ended_at) VALUES ($1, $2::bigint[], $3);

-- name: take_endings
-- The oldest notes, of about $1 jobs together. Whoever else does this at the same time gets others.
DELETE FROM endings WHERE id = ANY (ARRAY(
    SELECT f.id FROM (
        SELECT e.id, sum(e.jobs) OVER (ORDER BY e.id) - e.jobs AS before
        FROM (SELECT id, jobs FROM endings ORDER BY id LIMIT 1000 FOR UPDATE SKIP LOCKED) e
    ) f WHERE f.before < $1
))
RETURNING job_ids, ended_at;

-- name: end_unchanged
-- A job that was never changed gets no other firing by an edit: no lock first. The note alone is not enough: a manual run
-- that was redriven left it before the firing. One that is being changed just now is at its next version when we get it,
-- and is left to the statement below.
UPDATE jobs j SET state = 'ended', ended_at = x.ended_at FROM {rows EndedJob}
WHERE j.id = x.id AND j.version = 1 AND j.one_off AND j.state = 'active'
  AND (SELECT 1 FROM runs r WHERE {of_job r j.id} AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL
RETURNING j.id;

-- name: end_jobs
-- Under the job's lock, in a statement after it: an edit that gave it another slot is seen by the run it made.
UPDATE jobs j SET state = 'ended', ended_at = x.ended_at FROM {rows EndedJob}
WHERE j.id = x.id AND j.one_off AND j.state IN ('active', 'paused')
  AND (SELECT 1 FROM runs r WHERE {of_job r j.id} AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL
RETURNING j.id;

-- name: any_endings
SELECT 1 AS there FROM endings LIMIT 1;

-- name: scheduled_run
SELECT 1 AS there FROM runs WHERE {of_job runs $1} AND kind IN {FIRINGS} ORDER BY id LIMIT 1;

-- name: finish_record
-- Runs that ended leave `runs` and enter the ledger, if (id, node, token) still match; who has an open one is how it is
-- open. Not `node` alone, and no word of the state (only a running row has a node): either would let the generic plan read
-- runs_of_node, all that runs, instead of the key: 2k/s instead of 40k. A conflict is a slot that is in the ledger already: an alarm, never an aborted batch.
WITH gone AS (
    DELETE FROM runs r USING {rows EndedRun}
    WHERE r.id = x.id AND r.token = x.token AND coalesce(r.node, r.open) = x.node
    RETURNING r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.lane, r.group_key, r.parent,
        r.claimed_at, {columns EndedRun x node=r.node}
), kept AS (
    INSERT INTO history (tenant, job_id, slot, kind, due_at, parent, claimed_at, {columns EndedRun})
    SELECT tenant, job_id, slot, kind, due_at, parent, claimed_at, {columns EndedRun} FROM gone
    ON CONFLICT DO NOTHING
    RETURNING id
)
-- As a join the planner, which takes both for ten rows, compares each with each: 100 µs a run instead of 20.
SELECT g.id, g.job_id, g.kind, g.recurring, g.lane, g.group_key, g.id IN (SELECT id FROM kept) AS recorded FROM gone g;

-- name: finish_lock
-- Runs that go back to pending are locked first: whether their job is paused, changed or gone can be seen only after.
SELECT r.id, r.job_id, r.lane, r.group_key, r.slot, r.kind, r.recurring, r.due_at, r.tries, r.losses, r.token, r.attempts,
    r.orders, r.claimed_at
FROM {rows OwnedRun} JOIN runs r ON r.id = x.id
WHERE r.token = x.token AND coalesce(r.node, r.open) = x.node
FOR UPDATE OF r;

-- name: finish_retry
-- Pending again, with what the job asks for now. A paused job's run waits for the resume, unless it was started by hand.
-- Only what was recalled can have been claimed by another spec: that of the others is not read.
UPDATE runs r
SET state = 'pending', node = NULL, begun_at = NULL, orders = NULL, claimed_at = NULL, work = NULL, open = NULL, progress = NULL,
    open_until = NULL, waiting = NULL, waiting_until = NULL, tries = x.tries, losses = x.losses,
    waiting_since = CASE WHEN x.tries = r.tries THEN r.waiting_since END,
    attempts = x.attempts, cursor = x.cursor, requires = j.requires,
    level = CASE WHEN r.kind = 'chain' THEN greatest(r.level, j.level) ELSE j.level END,
    at_most_once = CASE WHEN r.orders = 'recall' THEN j.spec::json #>> '{policy,delivery}' IS NOT DISTINCT FROM 'at_most_once'
        ELSE r.at_most_once END,
    backlog = r.backlog OR r.due_at < {now} - {BACKLOG_MS},
    parked = CASE WHEN j.state = 'paused' AND r.kind <> 'manual' THEN 'paused' END,
    resume_at = CASE WHEN j.state = 'paused' AND r.kind <> 'manual' THEN greatest(x.ready_at, {now}) END,
    ready_at = CASE WHEN j.state = 'paused' AND r.kind <> 'manual' THEN {NEVER}
        ELSE greatest(x.ready_at, {now}) END
FROM {rows PendingAgain}, jobs j
WHERE r.id = x.id AND j.id = r.job_id
RETURNING r.id;

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
SELECT {columns RefusedRow x}, {now} FROM {rows RefusedRow}
ON CONFLICT DO NOTHING;

-- name: refused_of
SELECT token, node, started_at, finished_at, outcome, error, refused_at FROM refused_results
WHERE run_id = $2 AND tenant = $1 ORDER BY refused_at, token, node LIMIT 20;

-- name: add_stats
-- Also of a job that was deleted: it may come back.
INSERT INTO job_stats AS s (tenant, {columns EndedRuns})
SELECT coalesce(j.tenant, d.tenant), {columns EndedRuns x}
FROM {rows EndedRuns} LEFT JOIN jobs j ON j.id = x.job_id LEFT JOIN deleted_jobs d ON d.id = x.job_id
WHERE j.id IS NOT NULL OR d.id IS NOT NULL
ORDER BY x.job_id
ON CONFLICT (job_id) DO UPDATE SET
    runs = s.runs + excluded.runs, failures = s.failures + excluded.failures, timed = s.timed + excluded.timed,
    duration_ms = s.duration_ms + excluded.duration_ms,
    last_duration_ms = coalesce(excluded.last_duration_ms, s.last_duration_ms),
    last_lateness_ms = coalesce(excluded.last_lateness_ms, s.last_lateness_ms),
    last_status = excluded.last_status, last_run_id = excluded.last_run_id, last_finished_at = excluded.last_finished_at;

-- name: add_dead_letters
-- Of jobs that are there: nobody can drive those of a deleted one again.
INSERT INTO dead_letters ({columns DeadLetter})
SELECT {columns DeadLetter x} FROM {rows DeadLetter} JOIN jobs j ON j.id = x.job_id
ON CONFLICT DO NOTHING;

-- name: keep_late_dead_letters
-- Of jobs that were deleted meanwhile, should they come back.
INSERT INTO deleted_dead_letters ({columns DeadLetter})
SELECT {columns DeadLetter x} FROM {rows DeadLetter} JOIN deleted_jobs d ON d.id = x.job_id;

-- name: add_logs
INSERT INTO run_logs AS l ({columns AttemptLog})
SELECT {columns AttemptLog x} FROM {rows AttemptLog}
ORDER BY x.run_id
ON CONFLICT (run_id) DO UPDATE SET log = right(l.log || excluded.log, {LOG_LIMIT}), updated_at = excluded.updated_at;

-- name: runs_by_id
SELECT id, tenant, job_id, slot, kind, recurring, lane, group_key FROM runs WHERE id = ANY ($1::text[]);

-- name: end_runs
INSERT INTO history (tenant, job_id, slot, kind, due_at, token, tries, losses, attempts, parent, {columns Ending})
SELECT r.tenant, r.job_id, r.slot, r.kind, r.due_at, r.token, r.tries, r.losses, r.attempts, r.parent, {columns Ending x}
FROM {rows Ending} JOIN runs r ON r.id = x.id
ON CONFLICT DO NOTHING
RETURNING id;

-- name: release_lanes
-- The oldest that waits in each lane may be claimed now. A statement of its own: it must see whom a claim parked while we
-- waited for the holder's row.
UPDATE runs r
SET parked = CASE WHEN j.state = 'paused' AND r.kind <> 'manual' THEN 'paused' END,
    resume_at = CASE WHEN j.state = 'paused' AND r.kind <> 'manual' THEN {now} END,
    ready_at = CASE WHEN j.state = 'paused' AND r.kind <> 'manual' THEN {NEVER} ELSE {now} END
FROM jobs j
WHERE j.id = r.job_id AND r.parked = 'lane' AND r.id = ANY (ARRAY(
    SELECT w.id FROM unnest($1::bigint[]) AS l (lane)
    CROSS JOIN LATERAL (
        SELECT id FROM runs WHERE lane = l.lane AND parked = 'lane' ORDER BY due_at LIMIT 1
    ) w
));
