-- Bulk operations (see `store/bulk`).

-- part: operation
id, tenant, verb, state, filter, ids IS NOT NULL AS by_ids, params, rate, total, total_exact, done, failed,
    skipped, errors, waiting_for, failed_again, actor, node, reason, created_at, updated_at, finished_at

-- name: add_operation
INSERT INTO operations ({columns NewOperation}) VALUES ({values NewOperation}) RETURNING {part operation};

-- name: get_operation
SELECT {part operation} FROM operations WHERE tenant = $1 AND id = $2;

-- name: list_operations
-- As many as a page holds, and how many there are.
SELECT {part operation}, found FROM (
    SELECT p.place, sum(p.bytes) OVER (ORDER BY p.place DESC) - p.bytes AS before, count(*) OVER () AS found FROM (
        SELECT id AS place, octet_length(params) AS bytes FROM operations
        WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3
    ) p
) w JOIN operations ON id = w.place
WHERE w.before < {PAGE_BYTES} ORDER BY id DESC;

-- name: abort_operation
-- Waits for the portion that is being done; so do the next two.
UPDATE operations SET state = 'aborted', updated_at = {now}, finished_at = {now}, waiting_for = 0, watched = '[]'
WHERE tenant = $1 AND id = $2 AND state IN ('running', 'paused');

-- name: pause_operation
UPDATE operations SET state = 'paused', updated_at = {now} WHERE tenant = $1 AND id = $2 AND state = 'running';

-- name: resume_operation
UPDATE operations SET state = 'running', updated_at = {now}, next_at = {now}
WHERE tenant = $1 AND id = $2 AND state = 'paused';

-- name: take_operation
-- The one whose turn it is, for the time of this transaction: whoever else looks gets another one.
SELECT *, ids IS NOT NULL AS by_ids, {now} AS now FROM operations
WHERE state = 'running' AND next_at <= {now} ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: next_operation
SELECT min(next_at) - {now} AS wait FROM operations WHERE state = 'running';

-- name: advance_operation
UPDATE operations SET ({columns OperationStep}) = ({values OperationStep}) WHERE id = $1 RETURNING {part operation};

-- name: prune_operations
DELETE FROM operations WHERE id = ANY (ARRAY(
    SELECT id FROM operations WHERE finished_at < $1 ORDER BY finished_at LIMIT $2
));

-- name: newest_job
SELECT coalesce(max(id), 0) AS id FROM jobs;

-- name: job_window
-- The next $3 jobs below $2, of all tenants ($1): how many there are, and the last of them.
SELECT count(*) AS n, min(id) AS last FROM (
    SELECT id FROM jobs WHERE id < $2 AND $1::bigint IS NOT NULL ORDER BY id DESC LIMIT $3
) w;

-- name: job_window_tagged
SELECT count(*) AS n, min(job_id) AS last FROM (
    SELECT job_id FROM job_tags WHERE tenant = $1 AND tag = $4 AND job_id < $2 ORDER BY job_id DESC LIMIT $3
) w;

-- name: jobs_in_window
SELECT j.id FROM jobs j WHERE j.tenant + 0 = $1 AND j.id < $2 AND j.id >= $3 AND {where} ORDER BY j.id DESC LIMIT $4;

-- name: jobs_in_window_tagged
SELECT j.id FROM job_tags t
CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = t.job_id AND tenant = t.tenant LIMIT 1) j
WHERE t.tenant = $1 AND t.tag = $5 AND t.job_id < $2 AND t.job_id >= $3 AND {where}
ORDER BY t.job_id DESC LIMIT $4;

-- name: where.any_job
true

-- name: lock_whole_jobs
SELECT * FROM jobs WHERE tenant = $1 AND id = ANY ($2::bigint[]) ORDER BY id FOR UPDATE;

-- name: lock_runs_of_jobs
-- Of each job $2 runs at most.
SELECT r.* FROM unnest($1::bigint[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT job_id, id, slot, kind, cursor, tries, parked, state, node, orders FROM runs r
    WHERE {of_job r j.id} ORDER BY r.id LIMIT $2 FOR UPDATE
) r;

-- name: change_states
UPDATE jobs j
SET spec = x.spec, state = x.state, anchor_at = x.anchor_at, claimed_slot = x.claimed_slot, slots_used = x.slots_used,
    paused_at = x.paused_at, reason = x.reason, pause_note = x.pause_note, pause_until = x.pause_until,
    updated_at = x.updated_at, version = j.version + 1,
    ended_at = CASE WHEN x.state = 'ended' THEN coalesce(j.ended_at, x.updated_at) END
FROM {rows StateOfJob} WHERE j.id = x.id;

-- name: move_cursors
UPDATE runs r SET due_at = x.due_at, ready_at = x.ready_at, parked = x.parked, resume_at = x.resume_at
FROM {rows MovedCursor} WHERE r.id = x.id;

-- name: park_by_id
UPDATE runs
SET resume_at = CASE WHEN parked IS NULL THEN ready_at ELSE due_at END, ready_at = {NEVER}, parked = 'paused'
WHERE id = ANY ($1::text[]);

-- name: release_by_id
UPDATE runs SET ready_at = greatest(coalesce(resume_at, due_at), $2), parked = NULL, resume_at = NULL
WHERE id = ANY ($1::text[]);

-- name: recall_by_id
UPDATE runs SET orders = 'recall' WHERE id = ANY ($1::text[]) AND orders IS NULL;

-- name: give_params
INSERT INTO run_params ({columns GivenParams}) SELECT {columns GivenParams x} FROM {rows GivenParams};

-- name: ends_of_runs
SELECT h.id, h.status FROM {rows EndedKey} JOIN history h ON h.tenant = $1 AND h.slot = x.slot AND h.id = x.id;

-- name: living_runs
SELECT id FROM runs WHERE id = ANY ($1::text[]);
