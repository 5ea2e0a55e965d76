-- Jobs: creating many at once, reading one, and what each of them shows.

-- name: insert_jobs
INSERT INTO jobs (id, tenant, key, name, key_search, name_search, spec, level, requires, target_type, schedule_kind,
                  one_off, owner, state, paused_at, ended_at, source, source_paused, version, anchor_at, slots_used,
                  created_at, updated_at)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'),
       json_extract(value, '$[6]'), json_extract(value, '$[7]'), json_extract(value, '$[8]'),
       json_extract(value, '$[9]'), json_extract(value, '$[10]'), json_extract(value, '$[11]'),
       json_extract(value, '$[12]'), json_extract(value, '$[13]'), json_extract(value, '$[14]'),
       json_extract(value, '$[15]'), json_extract(value, '$[16]'), json_extract(value, '$[17]'), 1, ?1, 0, ?1, ?1
FROM json_each(?2)
WHERE true
ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- Jobs without a key and first runs: no index can refuse them. Bound row by row, which beats taking JSON apart.
-- name: copy_jobs
INSERT INTO jobs (id, tenant, key, name, key_search, name_search, spec, level, requires, target_type, schedule_kind,
                  one_off, owner, state, paused_at, ended_at, source, source_paused, version, anchor_at, slots_used,
                  created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23);

-- name: copy_runs
INSERT INTO runs (id, slot, kind, cursor, due_at, ready_at, parked, resume_at, backlog, n, tenant, job_id, recurring,
                  requires, level, lane, at_most_once, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18);

-- name: insert_tags
INSERT INTO job_tags (tenant, tag, job_id)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1)
WHERE true
ON CONFLICT DO NOTHING;

-- name: delete_tags
DELETE FROM job_tags WHERE job_id = ?1;

-- name: holders_of_keys
SELECT j.tenant, j.key, j.id, j.source
FROM json_each(?1) u JOIN jobs j ON j.tenant = json_extract(u.value, '$[0]') AND j.key = json_extract(u.value, '$[1]');

-- name: find_job
SELECT * FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: lock_job
SELECT * FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: lock_job_by_key
SELECT * FROM jobs WHERE tenant = ?1 AND key = ?2;

-- name: update_job
UPDATE jobs
SET key = ?3, name = ?4, key_search = ?5, name_search = ?6, spec = ?7, level = ?8, requires = ?9, target_type = ?10,
    schedule_kind = ?11, one_off = ?12,
    owner = ?13, state = ?14, anchor_at = ?15, claimed_slot = ?16, slots_used = ?17,
    paused_at = ?18, ended_at = CASE WHEN ?14 = 'ended' THEN coalesce(ended_at, ?19) END, reason = ?20,
    pause_note = ?21, pause_until = ?22,
    version = version + 1, updated_at = ?19
WHERE tenant = ?1 AND id = ?2;

-- name: pauses_over
-- Jobs that are paused until an instant, the first to go on first.
SELECT id, tenant, pause_until, {now} AS now FROM jobs
WHERE state = 'paused' AND pause_until IS NOT NULL ORDER BY pause_until LIMIT ?1;

-- name: delete_job
DELETE FROM jobs WHERE tenant = ?1 AND id = ?2;

-- name: delete_job_stats
DELETE FROM job_stats WHERE job_id = ?1;

-- name: delete_job_dead_letters
DELETE FROM dead_letters WHERE job_id = ?1;

-- name: cursor_slot
SELECT slot FROM runs WHERE job_id = ?2 AND cursor AND tenant = ?1;

-- name: timer_left
SELECT (SELECT min(r.due_at) FROM runs r WHERE {of_job r j.id} AND r.kind IN ('scheduled', 'redrive')) - {now} AS left_ms
FROM jobs j WHERE j.tenant = ?1 AND j.id = ?2 AND j.one_off;

-- name: columns.view
j.id, j.spec, j.version, j.reason, j.paused_at, j.pause_note, j.pause_until,
       CASE WHEN j.one_off AND j.state IN ('active', 'paused')
             AND (SELECT 1 FROM runs r WHERE {of_job r j.id} AND r.kind IN ('scheduled', 'redrive') ORDER BY r.id LIMIT 1) IS NULL
            THEN 'ended' ELSE j.state END AS state,
       j.created_at, j.updated_at,
       (SELECT min(r.due_at) FROM runs r
        WHERE {of_job r j.id} AND r.kind IN ('scheduled', 'redrive') AND r.parked IS NULL
          AND (r.cursor OR (r.tries = 0 AND (r.due_at > {now}
               OR (r.kind = 'redrive' AND r.node IS NULL AND j.one_off AND j.state = 'active'))))) AS next_run,
       s.runs, s.failures, s.timed, s.duration_ms, s.last_duration_ms, s.last_lateness_ms, s.last_status, s.last_run_id,
       s.last_finished_at AS last_run,
       CASE WHEN j.one_off THEN
           (SELECT json_group_array(json_array(h.id, h.status, h.finished_at, h.duration_ms, h.lateness_ms))
            FROM (SELECT * FROM history WHERE job_id = j.id AND tenant = j.tenant AND status IN ('done', 'failed')
                  ORDER BY slot DESC LIMIT 100) h)
       END AS ended_runs

-- name: joins.view
LEFT JOIN job_stats s ON s.job_id = j.id

-- name: get_job
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = ?1 AND j.id = ?2;

-- name: get_job_by_key
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = ?1 AND j.key = ?2;

-- name: get_jobs
SELECT {columns} FROM jobs j {joins} WHERE +j.tenant = ?1 AND j.id IN (SELECT value FROM json_each(?2));

-- name: prune_jobs
DELETE FROM jobs
WHERE id IN (
    SELECT j.id FROM jobs j
    WHERE j.state = 'ended' AND j.one_off AND j.ended_at < ?1
      AND (SELECT 1 FROM runs r WHERE {of_job r j.id} ORDER BY r.id LIMIT 1) IS NULL
    ORDER BY j.ended_at, j.id LIMIT ?2)
RETURNING id;

-- name: prune_tags
DELETE FROM job_tags WHERE job_id IN (SELECT value FROM json_each(?1));
