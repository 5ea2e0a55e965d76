-- Dead letters (see `store/runs/dead_letters.py`).

-- name: list_dead
SELECT d.failed_at, d.cause, {part ended_listed}
FROM (
    SELECT * FROM dead_letters d
    WHERE d.tenant = ?1 AND (d.failed_at, d.run_id) < (?2, ?3) AND {where}
    ORDER BY d.failed_at DESC, d.run_id DESC LIMIT ?4
) d JOIN history h ON h.tenant = d.tenant AND h.slot = d.slot AND h.id = d.run_id
ORDER BY d.failed_at DESC, d.run_id DESC;

-- name: take_dead
-- Dead letters to drive again: whoever else does so at this moment gets others.
SELECT d.run_id AS id, d.job_id, d.slot FROM dead_letters d JOIN jobs j ON j.id = d.job_id
WHERE d.tenant = ?1 AND {where}
ORDER BY d.failed_at DESC, d.run_id DESC LIMIT ?2;

-- name: dead_letters_below
-- Those that failed before (?2, ?3), the last first. Whoever else has one in hand keeps it.
SELECT d.run_id AS id, d.job_id, d.slot, d.failed_at FROM dead_letters d
WHERE d.tenant = ?1 AND (d.failed_at, d.run_id) < (?2, ?3) AND {where}
ORDER BY d.failed_at DESC, d.run_id DESC LIMIT ?4;

-- name: dead_letters_by_id
SELECT d.run_id AS id, d.job_id, d.slot, d.failed_at FROM dead_letters d
WHERE d.tenant = ?1 AND d.run_id IN (SELECT value FROM json_each(?2));

-- name: dead_letters_matching
-- The same as they are now, for who only looks.
SELECT d.run_id AS id, (SELECT j.key FROM jobs j WHERE j.id = d.job_id) AS key FROM dead_letters d
WHERE d.tenant = ?1 AND d.failed_at <= ?2 AND {where}
ORDER BY d.failed_at DESC, d.run_id DESC LIMIT ?3;

-- name: delete_dead
DELETE FROM dead_letters WHERE run_id IN (SELECT value FROM json_each(?1));

-- name: where.any_dead
1

-- name: where.dead_ids
d.run_id IN (SELECT value FROM json_each(?1))

-- name: where.dead_job
d.job_id = ?1

-- name: where.dead_cause
d.cause = ?1

-- name: where.dead_since
d.failed_at >= ?1

-- name: where.dead_until
d.failed_at <= ?1

-- name: list_discarded
SELECT d.discarded_at, d.cause, d.note, d.actor, {part ended_listed}
FROM (
    SELECT * FROM discarded_letters d
    WHERE d.tenant = ?1 AND (d.discarded_at, d.run_id) < (?2, ?3) AND {where}
    ORDER BY d.discarded_at DESC, d.run_id DESC LIMIT ?4
) d JOIN history h ON h.tenant = d.tenant AND h.slot = d.slot AND h.id = d.run_id
ORDER BY d.discarded_at DESC, d.run_id DESC;

-- part: by_cause
-- Of the last ?2 that failed.
SELECT w.cause, count(*) AS letters, count(DISTINCT w.job_id) AS jobs, min(w.job_id) AS job_id,
    min(w.failed_at) AS first_at, max(w.failed_at) AS last_at
FROM (
    SELECT d.cause, d.job_id, d.failed_at FROM dead_letters d
    WHERE d.tenant = ?1 AND {where} ORDER BY d.failed_at DESC, d.run_id DESC LIMIT ?2
) w

-- name: group_dead
{part by_cause}
GROUP BY w.cause ORDER BY max(w.failed_at) DESC, w.cause;

-- name: group_dead_by_window
-- The same for each window of ?3 ms in which some failed.
{part by_cause}
GROUP BY w.cause, w.failed_at / ?3 ORDER BY max(w.failed_at) DESC, w.cause;

-- name: keep_discarded
INSERT INTO discarded_letters (run_id, tenant, job_id, slot, failed_at, cause, note, actor, discarded_at)
SELECT run_id, tenant, job_id, slot, failed_at, cause, ?2, ?3, ?4 FROM dead_letters WHERE run_id IN (SELECT value FROM json_each(?1));

-- name: prune_discarded
DELETE FROM discarded_letters WHERE run_id IN (
    SELECT run_id FROM discarded_letters WHERE slot < ?1 ORDER BY slot LIMIT ?2
);
