-- What ended, minute by minute.

-- name: count_finished
-- A skipped range without a count has more than 10,000 slots. Lateness in buckets, so that minutes can be added up.
SELECT tenant, finished_at / {MINUTE_MS} AS minute, status, {LATENESS_BUCKET} AS bucket, count(*) AS n, count(started_at) AS firings,
    sum(coalesce(slots, CASE WHEN until_slot IS NULL THEN 1 ELSE 10000 END)) AS slots,
    count(duration_ms) AS timed, coalesce(sum(duration_ms), 0) AS duration_ms, max(duration_ms) AS longest_ms
FROM history WHERE finished_at >= ?1 AND finished_at < ?2
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2;

-- name: any_ended_before
SELECT 1 AS one FROM history WHERE finished_at < ?1 LIMIT 1;

-- name: drop_rollups
DELETE FROM rollups WHERE step = ?1 AND at >= ?2 AND at < ?3;

-- name: add_rollups
INSERT INTO rollups ({columns RollupRow}) SELECT {columns RollupRow x} FROM {rows RollupRow};

-- name: rollups_between
SELECT {columns RollupRow} FROM rollups WHERE step = ?1 AND at >= ?2 AND at < ?3 ORDER BY tenant, at;

-- name: rollups_of_tenant
SELECT {columns RollupRow} FROM rollups WHERE tenant = ?1 AND step = ?2 AND at >= ?3 AND at < ?4 ORDER BY at;

-- name: duty_mark
SELECT at FROM duty_marks WHERE name = ?1;

-- name: lock_duty_mark
SELECT at FROM duty_marks WHERE name = ?1;

-- name: set_duty_mark
INSERT INTO duty_marks (name, at) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET at = excluded.at;
