-- Lists of jobs. Each is driven by one index and stops at its limit; further filters are put into {where}.

-- The newest first. `kinds` are the combinations of state, target and schedule that this tenant has: each step skips to
-- the next one in jobs_listed. Of each that is wanted the newest are taken, and of those the newest.
-- name: list_jobs
WITH RECURSIVE kinds AS (
    (SELECT state, target_type, schedule_kind FROM jobs WHERE tenant = $1
     ORDER BY tenant, state, target_type, schedule_kind LIMIT 1)
    UNION ALL
    SELECT n.* FROM kinds k CROSS JOIN LATERAL (
        SELECT state, target_type, schedule_kind FROM jobs
        WHERE tenant = $1 AND (state, target_type, schedule_kind) > (k.state, k.target_type, k.schedule_kind)
        ORDER BY tenant, state, target_type, schedule_kind LIMIT 1) n
)
SELECT {columns} FROM (
    SELECT j.* FROM kinds k CROSS JOIN LATERAL (
        SELECT * FROM jobs j
        WHERE j.tenant = $1 AND j.state = k.state AND j.target_type = k.target_type
          AND j.schedule_kind = k.schedule_kind AND j.id + 0 < $2 AND {where}
        ORDER BY j.id + 0 DESC LIMIT $3) j
    WHERE {kinds}
    ORDER BY j.id DESC LIMIT $3
) j {joins}
ORDER BY j.id DESC;

-- name: kinds.state
k.state = $1

-- name: kinds.target
k.target_type = $1

-- name: kinds.schedule
k.schedule_kind = $1

-- part: noted
-- Jobs whose firing has ended and that are not closed yet: those of the newest notes, about $2 of them.
SELECT DISTINCT unnest(e.job_ids) AS id FROM (
    SELECT l.job_ids, sum(l.jobs) OVER (ORDER BY l.id DESC) - l.jobs AS before
    FROM (SELECT id, jobs, job_ids FROM endings ORDER BY id DESC LIMIT 1000) l
) e WHERE e.before < $2::bigint

-- name: list_jobs_noted
-- The newest of those that have ended and whose rows do not say so yet.
SELECT {columns} FROM (
    SELECT j.* FROM ({part noted}) n
    CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = n.id AND tenant = $1 LIMIT 1) j
    WHERE n.id < $3 AND {part over} AND {where}
    ORDER BY n.id DESC LIMIT $4
) j {joins}
ORDER BY j.id DESC;

-- name: list_jobs_owned
SELECT {columns} FROM (
    SELECT j.* FROM jobs j WHERE j.tenant = $1 AND j.owner = $2 AND -j.id > -$3::bigint AND {where}
    ORDER BY -j.id LIMIT $4
) j {joins}
ORDER BY j.id DESC;

-- name: where.owner
j.owner = $1

-- name: list_jobs_tagged
SELECT {columns} FROM (
    SELECT j.* FROM job_tags t
    CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = t.job_id AND tenant = t.tenant LIMIT 1) j
    WHERE t.tenant = $1 AND t.tag = $2 AND t.job_id < $3 AND {where}
    ORDER BY t.job_id DESC LIMIT $4
) j {joins}
ORDER BY j.id DESC;

-- A job that matches by its key and by its name is found by its key alone.
-- name: list_jobs_matching
SELECT {columns}, j.matched FROM (
    SELECT * FROM (
        (SELECT j.*, j.key_search AS matched FROM jobs j
         WHERE j.tenant = $1 AND (j.key_search, j.id) > ($4, $5) AND j.key_search < $3 AND {where}
         ORDER BY j.key_search, j.id LIMIT $6)
        UNION ALL
        (SELECT j.*, j.name_search AS matched FROM jobs j
         WHERE j.tenant = $1 AND (j.name_search, j.id) > ($4, $5) AND j.name_search < $3
           AND (j.key_search IS NULL OR j.key_search < $2 OR j.key_search >= $3) AND {where}
         ORDER BY j.name_search, j.id LIMIT $6)
    ) found ORDER BY matched, id LIMIT $6
) j {joins}
ORDER BY j.matched, j.id;

-- Two indexes, merged: jobs that are due at their slot are found by it (runs_next), those with jitter by runs_jittered.
-- name: list_jobs_by_next
SELECT {columns}, j.matched, j.run FROM (
    SELECT * FROM (
        (SELECT j.*, r.slot AS matched, r.id AS run FROM runs r
         CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = r.job_id AND tenant = r.tenant LIMIT 1) j
         WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot
           AND r.tenant = $1 AND r.slot < $2 AND (r.slot, r.id) > ($3::bigint, $4::text) AND {where}
         ORDER BY r.slot, r.id LIMIT $5)
        UNION ALL
        (SELECT j.*, r.due_at AS matched, r.id AS run FROM runs r
         CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = r.job_id AND tenant = r.tenant LIMIT 1) j
         WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot
           AND r.tenant = $1 AND r.due_at < $2 AND (r.due_at, r.id) > ($3::bigint, $4::text) AND {where}
         ORDER BY r.due_at, r.id LIMIT $5)
    ) found ORDER BY matched, run LIMIT $5
) j {joins}
ORDER BY j.matched, j.run;

-- The same list for a tag that few jobs have: the next runs of all of them are looked up and sorted.
-- name: list_jobs_by_next_tagged
SELECT {columns}, j.matched, j.run FROM (
    SELECT j.*, r.due_at AS matched, r.id AS run
    FROM (SELECT * FROM job_tags WHERE tenant = $1 AND tag = $6 ORDER BY job_id LIMIT $7) t
    CROSS JOIN LATERAL (
        SELECT id, due_at FROM runs
        WHERE job_id = t.job_id AND cursor AND parked IS NULL AND due_at < $2 AND (due_at, id) > ($3::bigint, $4::text)
        LIMIT 1) r
    CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = t.job_id AND tenant = t.tenant LIMIT 1) j
    WHERE {where}
    ORDER BY matched, run LIMIT $5
) j {joins}
ORDER BY j.matched, j.run;

-- name: count_tagged
SELECT count(*) AS n FROM (SELECT 1 FROM job_tags WHERE tenant = $1 AND tag = $2 LIMIT $3) t;

-- name: where.state
j.state = $1

-- part: over
-- A one-off without a firing that lives has ended, whatever its row says yet.
j.one_off AND j.state IN ('active', 'paused')
AND (SELECT 1 FROM runs r WHERE {of_job r j.id} AND r.tenant = j.tenant AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL

-- name: where.over
(j.state = 'ended' OR ({part over}))

-- name: where.so_still
NOT ({part over})

-- name: where.target
j.target_type = $1

-- name: where.schedule
j.schedule_kind = $1

-- name: where.tag
EXISTS (SELECT 1 FROM job_tags x WHERE x.tenant = j.tenant AND x.tag = $1 AND x.job_id = j.id)

-- name: where.matching
((j.key_search >= $1 AND j.key_search < $2) OR (j.name_search >= $1 AND j.name_search < $2))
