-- Lists of jobs. Each is driven by one index and stops at its limit; further filters are put into {where}. What is sorted
-- and cut are ids: sorted with their jobs, five hundred of those could be half a gigabyte of memory.

-- The newest first. `kinds` has one job of each combination of state, target and schedule that this tenant has: each step
-- skips to the next one in jobs_listed. `newest` merges their jobs: it takes the newest that it holds (that is what ORDER
-- BY means here), and puts the next older one of the same kind in its place. In three steps because SQLite reads
-- all that is equal to find what is greater than (a, b, c).
-- part: newest
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

-- name: list_jobs
{part newest}
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
    SELECT j.id FROM ({part noted} ORDER BY 1 DESC) n CROSS JOIN jobs j
    WHERE j.id = n.id AND +j.tenant = ?1 AND n.id < ?3 AND {part over} AND {where}
    ORDER BY n.id DESC LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY j.id DESC;

-- name: list_jobs_owned
SELECT {columns} FROM (
    SELECT j.id FROM jobs j WHERE j.tenant = ?1 AND j.owner = ?2 AND j.id < ?3 AND {where}
    ORDER BY j.id DESC LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY j.id DESC;

-- name: where.owner
j.owner = ?1

-- name: list_jobs_tagged
SELECT {columns} FROM (
    SELECT j.id FROM job_tags t CROSS JOIN jobs j
    WHERE t.tenant = ?1 AND t.tag = ?2 AND t.job_id < ?3 AND j.id = t.job_id AND j.tenant = t.tenant AND {where}
    ORDER BY t.job_id DESC LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY j.id DESC;

-- Jobs that were noticed; whether it is still so is said by a filter.
-- name: list_jobs_noticed
SELECT {columns} FROM (
    SELECT j.id FROM noticed_jobs t CROSS JOIN jobs j
    WHERE t.tenant = ?1 AND t.what = ?2 AND t.job_id < ?3 AND j.id = t.job_id AND j.tenant = t.tenant AND {where}
    ORDER BY t.job_id DESC LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY j.id DESC;

-- Late: those that were noticed, and those whose next run is overdue now, of which the ?5 oldest.
-- name: list_jobs_late
SELECT {columns} FROM (
    SELECT j.id FROM (
        SELECT * FROM (SELECT t.job_id FROM noticed_jobs t
         WHERE t.tenant = ?1 AND t.what = ?2 AND t.job_id < ?3 AND t.job_id >= ?6 ORDER BY t.job_id DESC)
        UNION
        SELECT * FROM (SELECT r.job_id FROM runs r
         WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot AND r.tenant = ?1 AND r.slot < {now} - {LATE_MS}
         ORDER BY r.slot, r.id LIMIT ?5)
        UNION
        SELECT * FROM (SELECT r.job_id FROM runs r
         WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot AND r.tenant = ?1 AND r.due_at < {now} - {LATE_MS}
         ORDER BY r.due_at, r.id LIMIT ?5)
    ) t CROSS JOIN jobs j
    WHERE t.job_id < ?3 AND t.job_id >= ?6 AND j.id = t.job_id AND +j.tenant = ?1 AND {where}
    ORDER BY t.job_id DESC LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY j.id DESC;

-- A job that matches by its key and by its name is found by its key alone.
-- name: list_jobs_matching
SELECT {columns}, f.matched FROM (
    SELECT * FROM (
        SELECT * FROM (
            SELECT j.id, j.key_search AS matched FROM jobs j
            WHERE j.tenant = ?1 AND (j.key_search, j.id) > (?4, ?5) AND j.key_search < ?3
              AND {where}
            ORDER BY j.key_search, j.id LIMIT ?6)
        UNION ALL
        SELECT * FROM (
            SELECT j.id, j.name_search AS matched FROM jobs j
            WHERE j.tenant = ?1 AND (j.name_search, j.id) > (?4, ?5) AND j.name_search < ?3
              AND (j.key_search IS NULL OR j.key_search < ?2 OR j.key_search >= ?3) AND {where}
            ORDER BY j.name_search, j.id LIMIT ?6)
    ) ORDER BY matched, id LIMIT ?6
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY f.matched, f.id;

-- Two indexes, merged: jobs that are due at their slot are found by it (runs_next), those with jitter by runs_jittered.
-- name: list_jobs_by_next
SELECT {columns}, f.matched, f.run FROM (
    SELECT * FROM (
        SELECT * FROM (
            SELECT j.id, r.slot AS matched, r.id AS run FROM runs r CROSS JOIN jobs j
            WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot
              AND r.tenant = ?1 AND r.slot < ?2 AND r.slot >= ?6 AND (r.slot, r.id) {than} (?3, ?4)
              AND j.id = r.job_id AND j.tenant = r.tenant AND {where}
            ORDER BY r.slot {way}, r.id {way} LIMIT ?5)
        UNION ALL
        SELECT * FROM (
            SELECT j.id, r.due_at AS matched, r.id AS run FROM runs r CROSS JOIN jobs j
            WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot
              AND r.tenant = ?1 AND r.due_at < ?2 AND r.due_at >= ?6 AND (r.due_at, r.id) {than} (?3, ?4)
              AND j.id = r.job_id AND j.tenant = r.tenant AND {where}
            ORDER BY r.due_at {way}, r.id {way} LIMIT ?5)
    ) ORDER BY matched {way}, run {way} LIMIT ?5
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY f.matched {way}, f.run {way};

-- The same list for a tag that few jobs have: the next runs of all of them are looked up and sorted.
-- name: list_jobs_by_next_tagged
SELECT {columns}, f.matched, f.run FROM (
    SELECT j.id, r.due_at AS matched, r.id AS run
    FROM (SELECT * FROM job_tags WHERE tenant = ?1 AND tag = ?6 ORDER BY job_id LIMIT ?7) t
    CROSS JOIN runs r CROSS JOIN jobs j
    WHERE r.job_id = t.job_id AND r.cursor AND r.parked IS NULL AND r.due_at < ?2 AND (r.due_at, r.id) > (?3, ?4)
      AND j.id = t.job_id AND j.tenant = t.tenant AND {where}
    ORDER BY matched, run LIMIT ?5
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY f.matched, f.run;

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

-- How far one page looks that has filters without an index of their own: ?4 rows of what drives it, and where the last of
-- them is. No row: they end before.
-- name: reach_newest
{part newest}
SELECT min(id) AS id FROM newest HAVING count(id) = ?3;

-- name: reach_tagged
SELECT job_id AS id FROM job_tags WHERE tenant = ?1 AND tag = ?2 AND job_id < ?3 ORDER BY job_id DESC LIMIT 1 OFFSET ?4 - 1;

-- name: reach_owned
SELECT id FROM jobs WHERE tenant = ?1 AND owner = ?2 AND id < ?3 ORDER BY id DESC LIMIT 1 OFFSET ?4 - 1;

-- name: reach_noticed
SELECT job_id AS id FROM noticed_jobs
WHERE tenant = ?1 AND what = ?2 AND job_id < ?3 ORDER BY job_id DESC LIMIT 1 OFFSET ?4 - 1;

-- name: where.down_to
j.id >= ?1

-- name: where.owned_down_to
j.id >= ?1

-- name: where.found_down_to
t.job_id >= ?1

-- name: kinds.any
1

-- name: kinds.not_ended
k.state <> 'ended'

-- name: where.not_ended
j.state <> 'ended'

-- part: last_status
-- How the last run ended that was carried out, as the job's statistics say; null: none was.
CASE WHEN j.one_off THEN
    (SELECT status FROM (
        SELECT status, finished_at FROM history
        WHERE job_id = j.id AND +tenant = j.tenant AND status IN ('done', 'failed') ORDER BY slot DESC LIMIT 100)
     ORDER BY finished_at DESC LIMIT 1)
ELSE (SELECT s.last_status FROM job_stats s WHERE s.job_id = j.id) END

-- name: where.last_carried_out
({part last_status}) = ?1

-- name: where.last_not_carried_out
-- Of all its runs that ended, the one of the newest slot.
(SELECT h.status FROM history h WHERE h.job_id = j.id ORDER BY h.slot DESC, h.id DESC LIMIT 1) = ?1

-- name: where.not_failing
coalesce({part last_status}, '') <> 'failed'

-- name: where.never_ran
({part last_status}) IS NULL

-- name: where.ran
({part last_status}) IS NOT NULL

-- part: late
-- Its last run began late, or its next one is overdue: nobody has begun with it.
(coalesce((SELECT s.last_lateness_ms FROM job_stats s WHERE s.job_id = j.id), 0) > {LATE_MS}
 OR (SELECT 1 FROM runs r
     WHERE r.job_id = j.id AND r.cursor AND r.parked IS NULL AND r.state = 'pending' AND r.tries = 0
       AND r.due_at < {now} - {LATE_MS} LIMIT 1) IS NOT NULL)

-- name: where.late
{part late}

-- name: where.not_late
NOT {part late}

-- name: than.up
>

-- name: than.down
<

-- name: way.up
ASC

-- name: way.down
DESC

-- By what a job is called: its name, else its key. Those with neither come after, by another statement. SQLite uses the
-- index of an expression for a comparison of one value, not of two.
-- name: list_jobs_by_name
SELECT {columns}, f.matched FROM (
    SELECT j.id, coalesce(j.name_search, j.key_search) AS matched FROM jobs j
    WHERE j.tenant = ?1 AND coalesce(j.name_search, j.key_search) IS NOT NULL
      AND coalesce(j.name_search, j.key_search) {than}= ?2 AND (coalesce(j.name_search, j.key_search), j.id) {than} (?2, ?3) AND {where}
    ORDER BY coalesce(j.name_search, j.key_search) {way}, j.id {way} LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY f.matched {way}, f.id {way};

-- By the newest run that was carried out to its end: each job stands where its own is in the ledger.
-- name: list_jobs_by_last
SELECT {columns}, f.matched, f.run FROM (
    SELECT j.id, h.slot AS matched, h.id AS run FROM history h CROSS JOIN jobs j
    WHERE h.tenant = ?1 AND (h.slot, h.id) {than} (?2, ?3) AND h.slot >= ?5 AND h.slot <= ?6
      AND j.id = h.job_id AND j.tenant = h.tenant AND h.status IN ('done', 'failed')
      AND (SELECT 1 FROM history n
           WHERE n.job_id = h.job_id AND (n.slot, n.id) > (h.slot, h.id) AND n.status IN ('done', 'failed')
           ORDER BY n.slot DESC, n.id DESC LIMIT 1) IS NULL
      AND {where}
    ORDER BY h.slot {way}, h.id {way} LIMIT ?4
) f CROSS JOIN jobs j ON j.id = f.id {joins}
ORDER BY f.matched {way}, f.run {way};

-- name: reach_by_name
SELECT coalesce(j.name_search, j.key_search) AS matched, j.id FROM jobs j
WHERE j.tenant = ?1 AND coalesce(j.name_search, j.key_search) IS NOT NULL AND coalesce(j.name_search, j.key_search) {than}= ?2 AND (coalesce(j.name_search, j.key_search), j.id) {than} (?2, ?3)
ORDER BY coalesce(j.name_search, j.key_search) {way}, j.id {way} LIMIT 1 OFFSET ?4 - 1;

-- name: reach_by_last
SELECT h.slot AS matched, h.id AS run FROM history h WHERE h.tenant = ?1 AND (h.slot, h.id) {than} (?2, ?3)
ORDER BY h.slot {way}, h.id {way} LIMIT 1 OFFSET ?4 - 1;

-- name: reach_by_next
SELECT matched, run FROM (
    SELECT * FROM (SELECT r.slot AS matched, r.id AS run FROM runs r
     WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot AND r.tenant = ?1 AND (r.slot, r.id) {than} (?2, ?3)
     ORDER BY r.slot {way}, r.id {way} LIMIT ?4)
    UNION ALL
    SELECT * FROM (SELECT r.due_at AS matched, r.id AS run FROM runs r
     WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot AND r.tenant = ?1 AND (r.due_at, r.id) {than} (?2, ?3)
     ORDER BY r.due_at {way}, r.id {way} LIMIT ?4)
) f ORDER BY matched {way}, run {way} LIMIT 1 OFFSET ?4 - 1;

-- name: reach_matching
SELECT matched, id FROM (
    SELECT * FROM (SELECT key_search AS matched, id FROM jobs WHERE tenant = ?1 AND (key_search, id) > (?2, ?3) AND key_search < ?4
     ORDER BY key_search, id LIMIT ?5)
    UNION ALL
    SELECT * FROM (SELECT name_search AS matched, id FROM jobs WHERE tenant = ?1 AND (name_search, id) > (?2, ?3) AND name_search < ?4
     ORDER BY name_search, id LIMIT ?5)
) f ORDER BY matched, id LIMIT 1 OFFSET ?5 - 1;

-- name: where.name_up_to
coalesce(j.name_search, j.key_search) <= ?1 AND (coalesce(j.name_search, j.key_search), j.id) <= (?1, ?2)

-- name: where.name_down_to
coalesce(j.name_search, j.key_search) >= ?1 AND (coalesce(j.name_search, j.key_search), j.id) >= (?1, ?2)

-- name: where.next_up_to
(r.due_at, r.id) <= (?1, ?2)

-- name: where.next_down_to
(r.due_at, r.id) >= (?1, ?2)

-- name: where.last_up_to
(h.slot, h.id) <= (?1, ?2)

-- name: where.last_down_to
(h.slot, h.id) >= (?1, ?2)

-- name: where.unnamed
j.key_search IS NULL AND j.name_search IS NULL

-- name: where.no_next
(SELECT 1 FROM runs r WHERE r.job_id = j.id AND r.tenant = j.tenant AND r.cursor AND r.parked IS NULL LIMIT 1) IS NULL

-- name: where.next_between
(SELECT 1 FROM runs r
 WHERE r.job_id = j.id AND r.cursor AND r.parked IS NULL AND r.due_at >= ?1 AND r.due_at < ?2 LIMIT 1) IS NOT NULL

-- part: target_words
-- What its target is called. Not an address with somebody's name or password in it.
lower(j.target_type || ' '
    || CASE WHEN coalesce(instr(j.spec ->> '$.target.url', '@'), 0) = 0 THEN coalesce(j.spec ->> '$.target.url', '') ELSE '' END || ' '
    || coalesce(j.spec ->> '$.target.function', '') || ' ' || coalesce(j.spec ->> '$.target.command', '') || ' '
    || coalesce(j.spec ->> '$.target.image', '') || ' ' || coalesce(j.spec ->> '$.target.topic', '') || ' '
    || coalesce(j.spec ->> '$.target.broker', ''))

-- name: where.word
-- A word of three letters or more: anywhere.
(instr(coalesce(j.key_search, ''), ?1) > 0 OR instr(coalesce(j.name_search, ''), ?1) > 0
 OR instr({part target_words}, ?1) > 0
 OR EXISTS (SELECT 1 FROM job_tags x WHERE x.job_id = j.id AND instr(lower(x.tag), ?1) > 0))

-- name: where.short_word
-- One or two letters: where a key, a tag, a target or a word of the name begins.
(instr(' ' || coalesce(j.key_search, ''), ' ' || ?1) > 0 OR instr(' ' || coalesce(j.name_search, ''), ' ' || ?1) > 0
 OR instr(' ' || {part target_words}, ' ' || ?1) > 0
 OR EXISTS (SELECT 1 FROM job_tags x WHERE x.job_id = j.id AND instr(' ' || lower(x.tag), ' ' || ?1) > 0))

-- name: where.not_matching
(j.key_search IS NULL OR j.key_search < ?1 OR j.key_search >= ?2)
AND (j.name_search IS NULL OR j.name_search < ?1 OR j.name_search >= ?2)
