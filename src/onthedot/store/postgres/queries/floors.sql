-- Jobs that a clock which was ahead carried into the future.

-- name: floors_ahead
-- Recurring jobs from $1 to $2 whose newest slot lies after $3. A run cancelled long before its time makes such a
-- job, too.
SELECT id, tenant FROM jobs
WHERE id > $1 AND id <= $2 AND NOT one_off AND state <> 'quarantined' AND claimed_slot > $3
ORDER BY id;

-- name: given_up_ahead
-- Rows of slots that were not fired, written at a time that has not come, for slots that have not come: by themselves,
-- or as the end of a range that began before. What a node had in its hands is left: its token would be given again.
-- So is what a user left out.
SELECT id, slot, until_slot FROM history
WHERE job_id = $1 AND slot > $2 AND status = 'skipped' AND kind = 'scheduled' AND token = 0 AND finished_at > $2
  AND reason <> 'skipped'
UNION ALL
SELECT h.id, h.slot, h.until_slot FROM (
    SELECT id, slot, until_slot, kind, finished_at FROM history
    WHERE job_id = $1 AND status = 'skipped' AND slot <= $2
    ORDER BY slot DESC LIMIT 100
) h
WHERE h.until_slot > $2 AND h.kind = 'scheduled' AND h.finished_at > $2;

-- name: cut_given_up
UPDATE history SET until_slot = $4::bigint, slots = $5::bigint WHERE tenant = $1 AND slot = $2 AND id = $3;

-- name: drop_given_up
DELETE FROM history WHERE tenant = $1 AND slot = $2 AND id = $3;

-- name: set_back_job
UPDATE jobs SET state = $2::text, slots_used = $3, ended_at = NULL WHERE id = $1;

-- name: set_back_runs
-- Slots that were put into the queue before their time, and are not taken yet, wait for it. So do those that waited for
-- their lane or group: nobody is to take their place for having come later.
UPDATE runs
SET parked = NULL, ready_at = greatest(CASE WHEN lane IS NULL THEN due_at - $3::bigint ELSE due_at END, $2), backlog = false
WHERE {of_job runs $1} AND node IS NULL AND open IS NULL AND NOT cursor AND kind = 'scheduled' AND tries = 0 AND losses = 0
  AND (parked IS NULL OR parked IN ('lane', 'group')) AND due_at > $2;

-- name: run_after
-- How far one look at the runs goes that begins after $1: over $2 of them.
SELECT id FROM runs WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2::int - 1;

-- name: waiting_ahead
-- Runs from $1 to $2 that wait for longer than $3 and for something else than their own time: retries, with the attempts that
-- say when the last one ended, and what was released then. Of paused jobs too.
SELECT id, due_at, lane, CASE WHEN parked = 'paused' THEN resume_at ELSE ready_at END AS ready_at, attempts FROM runs
WHERE id > $1 AND id <= $2 AND node IS NULL AND open IS NULL AND NOT cursor AND (parked IS NULL OR parked = 'paused')
  AND CASE WHEN parked = 'paused' THEN resume_at ELSE ready_at END > $3
  AND (attempts IS NOT NULL OR CASE WHEN parked = 'paused' THEN resume_at ELSE ready_at END > due_at)
ORDER BY id;

-- name: set_back_waiting
-- $3: when it was to come as far as we know. Somebody may have taken it since.
UPDATE runs
SET ready_at = CASE WHEN parked IS NULL THEN $2::bigint ELSE ready_at END,
    resume_at = CASE WHEN parked = 'paused' THEN $2::bigint ELSE resume_at END
WHERE id = $1 AND state = 'pending' AND (parked IS NULL OR parked = 'paused')
  AND CASE WHEN parked = 'paused' THEN resume_at ELSE ready_at END = $3;

-- name: recall_far
-- Not begun, and its time is further away than any node takes runs ahead of it.
UPDATE runs SET orders = 'recall' WHERE state = 'running' AND begun_at IS NULL AND due_at > $1 AND orders IS NULL;
