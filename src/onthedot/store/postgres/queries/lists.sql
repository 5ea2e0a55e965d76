-- Lists of jobs. Each is driven by one index and stops at its limit; further filters are put into {where}.

-- The newest first. `kinds` are the combinations of state, target and schedule that this tenant has: each step skips to
-- the next one in jobs_listed. Of each that is wanted the newest are taken, and of those the newest.
-- part: kinds
WITH RECURSIVE kinds AS (
    (SELECT state, target_type, schedule_kind FROM jobs WHERE tenant = $1
     ORDER BY tenant, state, target_type, schedule_kind LIMIT 1)
    UNION ALL
    SELECT n.* FROM kinds k CROSS JOIN LATERAL (
        SELECT state, target_type, schedule_kind FROM jobs
        WHERE tenant = $1 AND (state, target_type, schedule_kind) > (k.state, k.target_type, k.schedule_kind)
        ORDER BY tenant, state, target_type, schedule_kind LIMIT 1) n
)

-- name: list_jobs
{part kinds}
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

-- Jobs that were noticed; whether it is still so is said by a filter.
-- name: list_jobs_noticed
SELECT {columns} FROM (
    SELECT j.* FROM noticed_jobs t
    CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = t.job_id AND tenant = t.tenant LIMIT 1) j
    WHERE t.tenant = $1 AND t.what = $2 AND t.job_id < $3 AND {where}
    ORDER BY t.job_id DESC LIMIT $4
) j {joins}
ORDER BY j.id DESC;

-- Late: those that were noticed, and those whose next run is overdue now, of which the $5 oldest. The clock is read in a
-- query of its own: compared with it directly, the index would be read to its end.
-- name: list_jobs_late
SELECT {columns} FROM (
    SELECT j.* FROM (
        (SELECT job_id FROM noticed_jobs t
         WHERE t.tenant = $1 AND t.what = $2 AND t.job_id < $3 AND t.job_id >= $6 ORDER BY t.job_id DESC)
        UNION
        (SELECT r.job_id FROM runs r
         WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot AND r.tenant = $1 AND r.slot < (SELECT {now} - {LATE_MS})
         ORDER BY r.slot, r.id LIMIT $5)
        UNION
        (SELECT r.job_id FROM runs r
         WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot AND r.tenant = $1 AND r.due_at < (SELECT {now} - {LATE_MS})
         ORDER BY r.due_at, r.id LIMIT $5)
    ) t CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = t.job_id AND tenant = $1 LIMIT 1) j
    WHERE t.job_id < $3 AND t.job_id >= $6 AND {where}
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
           AND r.tenant = $1 AND r.slot < $2 AND r.slot >= $6 AND (r.slot, r.id) {than} ($3::bigint, $4::text) AND {where}
         ORDER BY r.slot {way}, r.id {way} LIMIT $5)
        UNION ALL
        (SELECT j.*, r.due_at AS matched, r.id AS run FROM runs r
         CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = r.job_id AND tenant = r.tenant LIMIT 1) j
         WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot
           AND r.tenant = $1 AND r.due_at < $2 AND r.due_at >= $6 AND (r.due_at, r.id) {than} ($3::bigint, $4::text) AND {where}
         ORDER BY r.due_at {way}, r.id {way} LIMIT $5)
    ) found ORDER BY matched {way}, run {way} LIMIT $5
) j {joins}
ORDER BY j.matched {way}, j.run {way};

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

-- How far one page looks that has filters without an index of their own: $4 rows of what drives it, and where the last of
-- them is. No row: they end before.
-- name: reach_newest
{part kinds}
SELECT min(f.id) AS id FROM (
    SELECT j.id FROM kinds k CROSS JOIN LATERAL (
        SELECT id FROM jobs j
        WHERE j.tenant = $1 AND j.state = k.state AND j.target_type = k.target_type
          AND j.schedule_kind = k.schedule_kind AND j.id + 0 < $2
        ORDER BY j.id + 0 DESC LIMIT $3) j
    WHERE {kinds}
    ORDER BY j.id DESC LIMIT $3
) f HAVING count(*) = $3;

-- name: reach_tagged
SELECT job_id AS id FROM job_tags WHERE tenant = $1 AND tag = $2 AND job_id < $3 ORDER BY job_id DESC LIMIT 1 OFFSET $4 - 1;

-- name: reach_owned
SELECT id FROM jobs WHERE tenant = $1 AND owner = $2 AND -id > -$3::bigint ORDER BY -id LIMIT 1 OFFSET $4 - 1;

-- name: reach_noticed
SELECT job_id AS id FROM noticed_jobs
WHERE tenant = $1 AND what = $2 AND job_id < $3 ORDER BY job_id DESC LIMIT 1 OFFSET $4 - 1;

-- name: where.down_to
j.id + 0 >= $1

-- name: where.owned_down_to
-j.id <= -$1::bigint

-- name: where.found_down_to
t.job_id >= $1

-- name: kinds.any
true

-- name: kinds.not_ended
k.state <> 'ended'

-- name: where.not_ended
j.state <> 'ended'

-- part: last_status
-- How the last run ended that was carried out, as the job's statistics say; null: none was.
CASE WHEN j.one_off THEN
    (SELECT status FROM (
        SELECT status, finished_at FROM history
        WHERE job_id = j.id AND tenant + 0 = j.tenant AND status IN ('done', 'failed') ORDER BY slot DESC LIMIT 100) h
     ORDER BY h.finished_at DESC LIMIT 1)
ELSE (SELECT s.last_status FROM job_stats s WHERE s.job_id = j.id) END

-- name: where.last_carried_out
({part last_status}) = $1

-- name: where.last_not_carried_out
-- Of all its runs that ended, the one of the newest slot.
(SELECT h.status FROM history h WHERE h.job_id = j.id ORDER BY h.slot DESC, h.id DESC LIMIT 1) = $1

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

-- By what a job is called: its name, else its key. Those with neither come after, by another statement.
-- name: list_jobs_by_name
SELECT {columns}, j.matched FROM (
    SELECT j.*, coalesce(j.name_search, j.key_search) AS matched FROM jobs j
    WHERE j.tenant = $1 AND coalesce(j.name_search, j.key_search) IS NOT NULL
      AND (coalesce(j.name_search, j.key_search), j.id) {than} ($2::text, $3::bigint) AND {where}
    ORDER BY coalesce(j.name_search, j.key_search) {way}, j.id {way} LIMIT $4
) j {joins}
ORDER BY j.matched {way}, j.id {way};

-- By the newest run that was carried out to its end: each job stands where its own is in the ledger.
-- name: list_jobs_by_last
SELECT {columns}, j.matched, j.run FROM (
    SELECT j.*, h.slot AS matched, h.id AS run FROM history h CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = h.job_id AND tenant = h.tenant LIMIT 1) j
    WHERE h.tenant = $1 AND (h.slot, h.id) {than} ($2::bigint, $3::text) AND h.slot >= $5 AND h.slot <= $6
      AND h.status IN ('done', 'failed')
      AND (SELECT 1 FROM history n
           WHERE n.job_id = h.job_id AND (n.slot, n.id) > (h.slot, h.id) AND n.status IN ('done', 'failed')
           ORDER BY n.slot DESC, n.id DESC LIMIT 1) IS NULL
      AND {where}
    ORDER BY h.slot {way}, h.id {way} LIMIT $4
) j {joins}
ORDER BY j.matched {way}, j.run {way};

-- name: reach_by_name
SELECT coalesce(j.name_search, j.key_search) AS matched, j.id FROM jobs j
WHERE j.tenant = $1 AND coalesce(j.name_search, j.key_search) IS NOT NULL AND (coalesce(j.name_search, j.key_search), j.id) {than} ($2::text, $3::bigint)
ORDER BY coalesce(j.name_search, j.key_search) {way}, j.id {way} LIMIT 1 OFFSET $4 - 1;

-- name: reach_by_last
SELECT h.slot AS matched, h.id AS run FROM history h WHERE h.tenant = $1 AND (h.slot, h.id) {than} ($2::bigint, $3::text)
ORDER BY h.slot {way}, h.id {way} LIMIT 1 OFFSET $4 - 1;

-- name: reach_by_next
SELECT matched, run FROM (
    (SELECT r.slot AS matched, r.id AS run FROM runs r
     WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot AND r.tenant = $1 AND (r.slot, r.id) {than} ($2::bigint, $3::text)
     ORDER BY r.slot {way}, r.id {way} LIMIT $4)
    UNION ALL
    (SELECT r.due_at AS matched, r.id AS run FROM runs r
     WHERE r.cursor AND r.parked IS NULL AND r.due_at <> r.slot AND r.tenant = $1 AND (r.due_at, r.id) {than} ($2::bigint, $3::text)
     ORDER BY r.due_at {way}, r.id {way} LIMIT $4)
) f ORDER BY matched {way}, run {way} LIMIT 1 OFFSET $4 - 1;

-- name: reach_matching
SELECT matched, id FROM (
    (SELECT key_search AS matched, id FROM jobs WHERE tenant = $1 AND (key_search, id) > ($2::text, $3::bigint) AND key_search < $4
     ORDER BY key_search, id LIMIT $5)
    UNION ALL
    (SELECT name_search AS matched, id FROM jobs WHERE tenant = $1 AND (name_search, id) > ($2::text, $3::bigint) AND name_search < $4
     ORDER BY name_search, id LIMIT $5)
) f ORDER BY matched, id LIMIT 1 OFFSET $5 - 1;

-- name: where.name_up_to
(coalesce(j.name_search, j.key_search), j.id) <= ($1::text, $2::bigint)

-- name: where.name_down_to
(coalesce(j.name_search, j.key_search), j.id) >= ($1::text, $2::bigint)

-- name: where.next_up_to
(r.due_at, r.id) <= ($1::bigint, $2::text)

-- name: where.next_down_to
(r.due_at, r.id) >= ($1::bigint, $2::text)

-- name: where.last_up_to
(h.slot, h.id) <= ($1::bigint, $2::text)

-- name: where.last_down_to
(h.slot, h.id) >= ($1::bigint, $2::text)

-- name: where.unnamed
j.key_search IS NULL AND j.name_search IS NULL

-- name: where.no_next
(SELECT 1 FROM runs r WHERE r.job_id = j.id AND r.tenant = j.tenant AND r.cursor AND r.parked IS NULL LIMIT 1) IS NULL

-- name: where.next_between
(SELECT 1 FROM runs r
 WHERE r.job_id = j.id AND r.cursor AND r.parked IS NULL AND r.due_at >= $1 AND r.due_at < $2 LIMIT 1) IS NOT NULL

-- part: target_words
-- What its target is called. Not an address with somebody's name or password in it.
(SELECT lower(concat_ws(' ', j.target_type, CASE WHEN strpos(f.url, '@') = 0 THEN f.url END, f.function, f.command, f.image, f.topic,
                     f.broker))
    FROM json_to_record(j.spec::json -> 'target')
         AS f (url text, function text, command text, image text, topic text, broker text))

-- name: where.word
-- A word of three letters or more: anywhere.
(strpos(coalesce(j.key_search, ''), $1::text) > 0 OR strpos(coalesce(j.name_search, ''), $1::text) > 0
 OR strpos({part target_words}, $1::text) > 0
 OR EXISTS (SELECT 1 FROM job_tags x WHERE x.job_id = j.id AND strpos(lower(x.tag), $1::text) > 0))

-- name: where.short_word
-- One or two letters: where a key, a tag, a target or a word of the name begins.
(strpos(' ' || coalesce(j.key_search, ''), ' ' || $1::text) > 0 OR strpos(' ' || coalesce(j.name_search, ''), ' ' || $1::text) > 0
 OR strpos(' ' || {part target_words}, ' ' || $1::text) > 0
 OR EXISTS (SELECT 1 FROM job_tags x WHERE x.job_id = j.id AND strpos(' ' || lower(x.tag), ' ' || $1::text) > 0))

-- name: where.not_matching
(j.key_search IS NULL OR j.key_search < $1 OR j.key_search >= $2)
AND (j.name_search IS NULL OR j.name_search < $1 OR j.name_search >= $2)
