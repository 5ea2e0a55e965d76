-- Jobs that were deleted, for as long as they can come back.

-- name: keep_deleted
-- $3 to $5: what is left of it (see `plan.undelete`).
INSERT INTO deleted_jobs ({columns KeptJob}, claimed_slot, slots_used, cursor_slot, deleted_at)
SELECT {columns KeptJob}, $3::bigint, $4::bigint, $5::bigint, $6::bigint FROM jobs WHERE tenant = $1 AND id = $2;

-- name: keep_dead_letters
INSERT INTO deleted_dead_letters (run_id, tenant, job_id, slot, failed_at, cause)
SELECT run_id, tenant, job_id, slot, failed_at, cause FROM dead_letters WHERE job_id = $1;

-- name: lock_deleted
SELECT * FROM deleted_jobs WHERE tenant = $1 AND id = $2 FOR UPDATE;

-- name: find_deleted_by_key
SELECT id FROM deleted_jobs WHERE tenant = $1 AND key = $2 ORDER BY deleted_at DESC, id DESC LIMIT 1;

-- name: undelete_job
INSERT INTO jobs ({columns KeptJob}, claimed_slot, slots_used)
SELECT {columns KeptJob}, claimed_slot, slots_used FROM deleted_jobs WHERE id = $1;

-- name: settle_undeleted
UPDATE jobs SET state = $2::text, claimed_slot = $3::bigint, slots_used = $4::bigint,
    ended_at = CASE WHEN $2::text = 'ended' THEN coalesce(ended_at, $5::bigint) END
WHERE id = $1;

-- name: undelete_dead_letters
INSERT INTO dead_letters (run_id, tenant, job_id, slot, failed_at, cause)
SELECT run_id, tenant, job_id, slot, failed_at, cause FROM deleted_dead_letters WHERE job_id = $1;

-- name: take_back_cancelled
-- A slot that was cancelled because its job was deleted is to come again. The token goes on from where it was.
DELETE FROM history WHERE tenant = $1 AND slot = $2 AND id = $3 AND status = 'cancelled' AND reason = 'deleted'
RETURNING token;

-- name: set_token
UPDATE runs SET token = $2 WHERE id = $1;

-- name: forget_deleted
DELETE FROM deleted_jobs WHERE id = ANY($1::bigint[]);

-- name: forget_dead_letters
DELETE FROM deleted_dead_letters WHERE job_id = ANY($1::bigint[]);

-- name: forget_stats
DELETE FROM job_stats WHERE job_id = ANY($1::bigint[]);

-- name: take_forgotten
SELECT id FROM deleted_jobs WHERE deleted_at < $1 ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED;
