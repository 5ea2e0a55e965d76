-- Jobs: creating many at once, reading one, and what each of them shows.

-- name: insert_jobs
INSERT INTO jobs (id, tenant, key, name, key_search, name_search, spec, level, requires, target_type, schedule_kind,
                  one_off, owner, state, paused_at, ended_at, source, source_paused, version, anchor_at, slots_used,
                  created_at, updated_at)
SELECT u.*, 1, $1::bigint, 0, $1::bigint, $1::bigint
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[],
            $10::text[], $11::text[], $12::text[], $13::boolean[], $14::text[], $15::text[], $16::bigint[], $17::bigint[],
            $18::text[], $19::boolean[]) AS u
ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- Jobs without a key and first runs: no index can refuse them, so they need no statement that looks for conflicts.
-- name: copy_jobs
COPY jobs (id, tenant, key, name, key_search, name_search, spec, level, requires, target_type, schedule_kind,
           one_off, owner, state, paused_at, ended_at, source, source_paused, version, anchor_at, slots_used,
           created_at, updated_at) FROM STDIN;

-- name: copy_runs
COPY runs (id, slot, kind, cursor, due_at, ready_at, parked, resume_at, backlog, n, tenant, job_id, recurring,
           requires, level, lane, at_most_once, created_at) FROM STDIN;

-- name: insert_tags
INSERT INTO job_tags (tenant, tag, job_id)
SELECT u.* FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS u
ON CONFLICT DO NOTHING;

-- name: delete_tags
DELETE FROM job_tags WHERE job_id = $1;

-- name: holders_of_keys
SELECT j.tenant, j.key, j.id, j.source
FROM unnest($1::bigint[], $2::text[]) AS u(tenant, key) JOIN jobs j ON j.tenant = u.tenant AND j.key = u.key;

-- name: find_job
SELECT * FROM jobs WHERE tenant = $1 AND id = $2;

-- name: lock_job
SELECT * FROM jobs WHERE tenant = $1 AND id = $2 FOR UPDATE;

-- name: lock_job_by_key
SELECT * FROM jobs WHERE tenant = $1 AND key = $2 FOR UPDATE;

-- name: update_job
UPDATE jobs
SET key = $3, name = $4, key_search = $5, name_search = $6, spec = $7, level = $8, requires = $9, target_type = $10,
    schedule_kind = $11, one_off = $12,
    owner = $13, state = $14, anchor_at = $15, claimed_slot = $16, slots_used = $17,
    paused_at = $18, ended_at = CASE WHEN $14 = 'ended' THEN coalesce(ended_at, $19) END, reason = $20,
    pause_note = $21, pause_until = $22,
    version = version + 1, updated_at = $19
WHERE tenant = $1 AND id = $2;

-- name: pauses_over
-- Jobs that are paused until an instant, the first to go on first.
SELECT id, tenant, pause_until, {now} AS now FROM jobs
WHERE state = 'paused' AND pause_until IS NOT NULL ORDER BY pause_until LIMIT $1;

-- name: delete_job
DELETE FROM jobs WHERE tenant = $1 AND id = $2;

-- name: delete_job_stats
DELETE FROM job_stats WHERE job_id = $1;

-- name: delete_job_dead_letters
DELETE FROM dead_letters WHERE job_id = $1;

-- name: cursor_slot
SELECT slot FROM runs WHERE job_id = $2 AND cursor AND tenant = $1;

-- name: timer_left
SELECT (SELECT min(r.due_at) FROM runs r WHERE {of_job r j.id} AND r.kind IN ('scheduled', 'redrive')) - {now} AS left_ms
FROM jobs j WHERE j.tenant = $1 AND j.id = $2 AND j.one_off;

-- A subquery that ends in LIMIT is not made into a join: the generic plan, which takes any LIMIT $n for a tenth of the
-- table, would hash all of job_stats for a page of fifty.
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
           (SELECT json_agg(json_build_array(h.id, h.status, h.finished_at, h.duration_ms, h.lateness_ms)
                            ORDER BY h.finished_at DESC)::text
            FROM (SELECT * FROM history WHERE job_id = j.id AND tenant = j.tenant AND status IN ('done', 'failed')
                  ORDER BY slot DESC LIMIT 100) h)
       END AS ended_runs

-- name: joins.view
LEFT JOIN LATERAL (SELECT * FROM job_stats WHERE job_id = j.id LIMIT 1) s ON true

-- name: get_job
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = $1 AND j.id = $2;

-- name: get_job_by_key
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = $1 AND j.key = $2;

-- name: get_jobs
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = $1 AND j.id = ANY($2::bigint[]);

-- name: prune_jobs
DELETE FROM jobs
WHERE id = ANY(ARRAY(
    SELECT j.id FROM jobs j
    WHERE j.state = 'ended' AND j.one_off AND j.ended_at < $1
      AND (SELECT 1 FROM runs r WHERE {of_job r j.id} ORDER BY r.id LIMIT 1) IS NULL
    ORDER BY j.ended_at, j.id LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING id;

-- name: prune_tags
DELETE FROM job_tags WHERE job_id = ANY($1::bigint[]);
