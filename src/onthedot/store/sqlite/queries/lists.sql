-- Lists of jobs. Each is driven by one index and stops at its limit; further filters are put into {where}.

-- The newest first. `kinds` has one job of each combination of state, target and schedule that this tenant has: each step
-- skips to the next one in jobs_listed. `newest` merges their jobs: it takes the newest that it holds (that is what ORDER
-- BY means here), and puts the next older one of the same kind in its place. In three steps because SQLite reads
-- all that is equal to find what is greater than (a, b, c).
-- name: list_jobs
WITH RECURSIVE kinds (id) AS (
    SELECT * FROM (SELECT id FROM jobs WHERE tenant = ?1 ORDER BY state, target_type, schedule_kind LIMIT 1)
    UNION ALL
    SELECT coalesce(
        (SELECT n.id FROM jobs n
         WHERE n.tenant = ?1 AND n.state = k.state AND n.target_type = k.target_type AND n.schedule_kind > k.schedule_kind
         ORDER BY n.schedule_kind LIMIT 1),
        (SELECT n.id FROM jobs n WHERE n.tenant = ?1 AND n.state = k.state AND n.target_type > k.target_type
         ORDER BY n.target_type, n.schedule_kind LIMIT 1),
        (SELECT n.id FROM jobs n WHERE n.tenant = ?1 AND n.state > k.state
         ORDER BY n.state, n.target_type, n.schedule_kind LIMIT 1))
    FROM kinds CROSS JOIN jobs k ON k.id = kinds.id
), newest (id) AS (
    SELECT (SELECT j.id FROM jobs j
            WHERE j.tenant = ?1 AND j.state = k.state AND j.target_type = k.target_type
              AND j.schedule_kind = k.schedule_kind AND j.id < ?2 AND {where}
            ORDER BY j.id DESC LIMIT 1)
    FROM kinds CROSS JOIN jobs k ON k.id = kinds.id WHERE {kinds}
    UNION ALL
    SELECT (SELECT j.id FROM jobs j
            WHERE j.tenant = ?1 AND j.state = k.state AND j.target_type = k.target_type
              AND j.schedule_kind = k.schedule_kind AND j.id < k.id AND {where}
            ORDER BY j.id DESC LIMIT 1)
    FROM newest CROSS JOIN jobs k ON k.id = newest.id
    ORDER BY 1 DESC LIMIT ?3
)
SELECT {columns} FROM newest CROSS JOIN jobs j ON j.id = newest.id {joins}
ORDER BY j.id DESC;

-- name: kinds.state
k.state = ?1

-- name: kinds.target
k.target_type = ?1

-- name: kinds.schedule
k.schedule_kind = ?1

-- part: noted
-- Jobs whose firing has ended and that are not closed yet: those of the newest notes, about ?2 of them.
SELECT DISTINCT m.value AS id FROM (
    SELECT l.job_ids, sum(l.jobs) OVER (ORDER BY l.id DESC) - l.jobs AS before
    FROM (SELECT id, jobs, job_ids FROM endings ORDER BY id DESC LIMIT 1000) l
) e CROSS JOIN json_each(e.job_ids) m WHERE e.before < ?2

-- name: list_jobs_noted
-- The newest of those that have ended and whose rows do not say so yet.
SELECT {columns} FROM (
    SELECT j.* FROM ({part noted} ORDER BY 1 DESC) n CROSS JOIN jobs j
    WHERE j.id = n.id AND +j.tenant = ?1 AND n.id < ?3 AND {part over} AND {where}
    ORDER BY n.id DESC LIMIT ?4
) j {joins}
ORDER BY j.id DESC;

-- name: list_jobs_owned
SELECT {columns} FROM (
    SELECT j.* FROM jobs j WHERE j.tenant = ?1 AND j.owner = ?2 AND j.id < ?3 AND {where}
    ORDER BY j.id DESC LIMIT ?4
) j {joins}
ORDER BY j.id DESC;

-- name: where.owner
j.owner = ?1

-- name: list_jobs_tagged
SELECT {columns} FROM (
    SELECT j.* FROM job_tags t CROSS JOIN jobs j
    WHERE t.tenant = ?1 AND t.tag = ?2 AND t.job_id < ?3 AND j.id = t.job_id AND j.tenant = t.tenant AND {where}
    ORDER BY t.job_id DESC LIMIT ?4
) j {joins}
ORDER BY j.id DESC;

-- A job that matches by its key and by its name is found by its key alone.
-- name: list_jobs_matching
SELECT {columns}, j.matched FROM (
    SELECT * FROM (
        SELECT * FROM (
            SELECT j.*, j.key_search AS matched FROM jobs j
            WHERE j.tenant = ?1 AND (j.key_search, j.id) > (?4, ?5) AND j.key_search < ?3
              AND {where}
            ORDER BY j.key_search, j.id LIMIT ?6)
        UNION ALL
        SELECT * FROM (
            SELECT j.*, j.name_search AS matched FROM jobs j
            WHERE j.tenant = ?1 AND (j.name_search, j.id) > (?4, ?5) AND j.name_search < ?3
              AND (j.key_search IS NULL OR j.key_search < ?2 OR j.key_search >= ?3) AND {where}
            ORDER BY j.name_search, j.id LIMIT ?6)
    ) ORDER BY matched, id LIMIT ?6
) j {joins}
ORDER BY j.matched, j.id;

-- Two indexes, merged: jobs that are due at their slot are found by it (runs_next), those with jitter by runs_jittered.
-- name: list_jobs_by_next
SELECT {columns}, j.matched, j.run FROM (
    SELECT * FROM (
        SELECT * FROM (
            SELECT j.*, r.slot AS matched, r.id AS run FROM runs r CROSS JOIN jobs j
            WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot
              AND r.tenant = ?1 AND r.slot < ?2 AND (r.slot, r.id) > (?3, ?4)
              AND j.id = r.job_id AND j.tenant = r.tenant AND {where}
            ORDER BY r.slot, r.id LIMIT ?5)
        UNION ALL
        SELECT * FROM (
            SELECT j.*, r.due_at AS matched, r.id AS run FROM runs r CROSS JOIN jobs j
            WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot
              AND r.tenant = ?1 AND r.due_at < ?2 AND (r.due_at, r.id) > (?3, ?4)
              AND j.id = r.job_id AND j.tenant = r.tenant AND {where}
            ORDER BY r.due_at, r.id LIMIT ?5)
    ) ORDER BY matched, run LIMIT ?5
) j {joins}
ORDER BY j.matched, j.run;

-- The same list for a tag that few jobs have: the next runs of all of them are looked up and sorted.
-- name: list_jobs_by_next_tagged
SELECT {columns}, j.matched, j.run FROM (
    SELECT j.*, r.due_at AS matched, r.id AS run
    FROM (SELECT * FROM job_tags WHERE tenant = ?1 AND tag = ?6 ORDER BY job_id LIMIT ?7) t
    CROSS JOIN runs r CROSS JOIN jobs j
    WHERE r.job_id = t.job_id AND r.cursor AND r.parked IS NULL AND r.due_at < ?2 AND (r.due_at, r.id) > (?3, ?4)
      AND j.id = t.job_id AND j.tenant = t.tenant AND {where}
    ORDER BY matched, run LIMIT ?5
) j {joins}
ORDER BY j.matched, j.run;

-- name: count_tagged
SELECT count(*) AS n FROM (SELECT 1 FROM job_tags WHERE tenant = ?1 AND tag = ?2 LIMIT ?3);

-- name: where.state
j.state = ?1

-- part: over
-- A one-off without a firing that lives has ended, whatever its row says yet.
j.one_off AND j.state IN ('active', 'paused')
AND (SELECT 1 FROM runs r WHERE {of_job r j.id} AND r.tenant = j.tenant AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL

-- name: where.over
(j.state = 'ended' OR ({part over}))

-- name: where.so_still
NOT ({part over})

-- name: where.target
j.target_type = ?1

-- name: where.schedule
j.schedule_kind = ?1

-- name: where.tag
EXISTS (SELECT 1 FROM job_tags x WHERE x.tenant = j.tenant AND x.tag = ?1 AND x.job_id = j.id)

-- name: where.matching
((j.key_search >= ?1 AND j.key_search < ?2) OR (j.name_search >= ?1 AND j.name_search < ?2))
