-- What a verb on a job does to its runs. The job's row is locked first, in a statement before any of these.

-- name: lock_runs
SELECT id, slot, kind, cursor, tries, parked, state FROM runs
WHERE tenant = ?1 AND {of_job runs ?2}
ORDER BY id;

-- name: drop_cursor
DELETE FROM runs WHERE job_id = ?1 AND cursor;

-- name: move_cursor
UPDATE runs SET due_at = ?2, ready_at = ?3, parked = ?4, resume_at = ?5 WHERE job_id = ?1 AND cursor;

-- name: refit_runs
-- What has begun its work stays what it was begun as: it is adopted by that. When its job ends is another thing. What a node
-- has stays at most once, or not, as it was claimed: it may have been sent so. `finish_retry` makes up for that.
UPDATE runs
SET requires = CASE WHEN work IS NULL THEN ?2 ELSE requires END,
    level = CASE WHEN work IS NULL AND kind = 'chain' THEN max(level, ?3) WHEN work IS NULL THEN ?3 ELSE level END,
    at_most_once = CASE WHEN work IS NULL AND node IS NULL THEN ?4 ELSE at_most_once END, recurring = ?5,
    waiting = NULL, waiting_since = NULL, waiting_until = NULL
WHERE {of_job runs ?1};

-- name: relane_runs
UPDATE runs
SET lane = ?2,
    ready_at = CASE WHEN parked = 'lane' THEN ?3 ELSE ready_at END,
    parked = CASE WHEN parked = 'lane' THEN NULL ELSE parked END
WHERE {of_job runs ?1} AND state = 'pending' AND lane IS NOT ?2;

-- name: regroup_runs
-- ?2 the group, ?3 its limit. Those that are running count where their job says now; they have a lane from then on, so that
-- their end is told to the group. Those that waited for the group before are claimed and judged anew.
UPDATE runs
SET group_key = ?2, group_limit = ?3,
    lane = CASE WHEN lane IS NULL AND ?2 IS NOT NULL THEN -job_id ELSE lane END,
    ready_at = CASE WHEN parked = 'group' THEN ?4 ELSE ready_at END,
    parked = CASE WHEN parked = 'group' THEN NULL ELSE parked END
WHERE {of_job runs ?1};

-- name: park_runs
UPDATE runs
SET resume_at = CASE WHEN parked IS NULL THEN ready_at ELSE due_at END, ready_at = {NEVER}, parked = 'paused'
WHERE {of_job runs ?1} AND state = 'pending' AND kind <> 'manual' AND parked IS NOT 'paused';

-- name: release_runs
UPDATE runs SET ready_at = max(coalesce(resume_at, due_at), ?2), parked = NULL, resume_at = NULL
WHERE {of_job runs ?1} AND parked IN ('paused', 'quarantined');

-- name: recall_runs
-- Whatever a node has: only the node knows what has not been sent. One whose instant has come may wait for a connection or a
-- worker, and one that is recorded as begun may not know it yet (the answer was lost): asked again, `begin` says no. What
-- was sent goes on. By the node, not the state: naming that would let a plan read all that runs.
UPDATE runs SET orders = 'recall' WHERE {of_job runs ?1} AND node IS NOT NULL AND orders IS NULL;

-- name: slots_taken
SELECT slot FROM runs WHERE tenant = ?1 AND {of_job runs ?2} AND slot BETWEEN ?3 AND ?4 AND kind NOT IN ('manual', 'chain')
UNION
SELECT slot FROM history
WHERE +tenant = ?1 AND job_id = ?2 AND slot BETWEEN ?3 AND ?4 AND kind NOT IN ('manual', 'chain') AND status = 'done';

-- name: slots_with_rows
-- The slots of a job in (?2, ?3] that have a row. One statement: a run that ends meanwhile stands in one of the two. The
-- last part: a range that began before and ends in between, if the clock was set back a little since.
SELECT slot, slot AS until_slot FROM runs
WHERE {of_job runs ?1} AND slot > ?2 AND slot <= ?3 AND kind = 'scheduled' AND NOT cursor
UNION ALL
SELECT slot, coalesce(until_slot, slot) AS until_slot FROM history
WHERE job_id = ?1 AND slot > ?2 AND slot <= ?3 AND kind = 'scheduled'
UNION ALL
SELECT h.slot, h.until_slot FROM (
    SELECT slot, until_slot, kind FROM history
    WHERE job_id = ?1 AND status = 'skipped' AND slot <= ?2
    ORDER BY slot DESC LIMIT 100
) h
WHERE h.until_slot > ?2 AND h.kind = 'scheduled';

-- name: decided_slot
-- The slot's own row in the ledger.
SELECT status, reason, token, finished_at FROM history WHERE tenant = ?1 AND slot = ?2 AND id = ?3;

-- name: say_who_skipped
UPDATE history SET outcome = ?4 WHERE tenant = ?1 AND slot = ?2 AND id = ?3;

-- name: take_back_skipped
DELETE FROM history WHERE tenant = ?1 AND slot = ?2 AND id = ?3 AND status = 'skipped' AND reason = 'skipped';

-- name: slots_left_out
-- Of a job, by users, after ?2. Few rows of the ledger lie in the future.
SELECT id, slot, finished_at, outcome FROM history
WHERE job_id = ?1 AND slot > ?2 AND status = 'skipped' AND status <> 'done' AND reason = 'skipped'
ORDER BY slot LIMIT ?3;
