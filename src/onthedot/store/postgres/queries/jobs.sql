-- Jobs: creating many at once, reading one, and what each of them shows.

-- name: insert_jobs
INSERT INTO jobs ({columns NewJobRow})
SELECT {columns NewJobRow x} FROM {rows NewJobRow}
ON CONFLICT (tenant, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id;

-- name: copy_jobs
-- Jobs without a key: no index can refuse them, so they need no statement that looks for conflicts.
COPY jobs ({columns NewJobRow}) FROM STDIN;

-- name: insert_tags
INSERT INTO job_tags ({columns TagOfJob}) SELECT {columns TagOfJob x} FROM {rows TagOfJob}
ON CONFLICT DO NOTHING;

-- name: delete_tags
DELETE FROM job_tags WHERE job_id = $1;

-- name: holders_of_keys
SELECT j.tenant, j.key, j.id, j.source
FROM {rows KeyOfJob} JOIN jobs j ON j.tenant = x.tenant AND j.key = x.key;

-- name: find_job
SELECT * FROM jobs WHERE tenant = $1 AND id = $2;

-- name: lock_job
SELECT * FROM jobs WHERE tenant = $1 AND id = $2 FOR UPDATE;

-- name: lock_job_by_key
SELECT * FROM jobs WHERE tenant = $1 AND key = $2 FOR UPDATE;

-- name: update_job
UPDATE jobs
SET ({columns ChangedJob}) = ({values ChangedJob}),
    ended_at = CASE WHEN {ChangedJob.state} = 'ended' THEN coalesce(ended_at, {ChangedJob.updated_at}) END,
    version = version + 1
WHERE tenant = $1 AND id = $2;

-- name: pauses_over
-- Jobs that are paused until an instant, the first to go on first.
SELECT id, tenant, pause_until, {now} AS now FROM jobs
WHERE state = 'paused' AND pause_until IS NOT NULL ORDER BY pause_until LIMIT $1;

-- name: delete_job
DELETE FROM jobs WHERE tenant = $1 AND id = $2;

-- name: delete_job_dead_letters
DELETE FROM dead_letters WHERE job_id = $1;

-- name: cursor_slot
SELECT slot FROM runs WHERE job_id = $2 AND cursor AND tenant = $1;

-- name: timer_left
SELECT (SELECT min(r.due_at) FROM runs r WHERE {of_job r j.id} AND r.kind IN {FIRINGS}) - {now} AS left_ms
FROM jobs j WHERE j.tenant = $1 AND j.id = $2 AND j.one_off;

-- A subquery that ends in LIMIT is not made into a join: the generic plan, which takes any LIMIT $n for a tenth of the
-- table, would hash all of job_stats for a page of fifty. `tenant + 0`: planned before the history was first analyzed, the
-- primary key was read from end to end, because a tenant seemed to have one row in two hundred.
-- part: viewed
j.id, j.version, j.reason, j.paused_at, j.pause_note, j.pause_until,
       CASE WHEN j.one_off AND j.state IN ('active', 'paused')
             AND (SELECT 1 FROM runs r WHERE {of_job r j.id} AND r.kind IN {FIRINGS} ORDER BY r.id LIMIT 1) IS NULL
            THEN 'ended' ELSE j.state END AS state,
       j.created_at, j.updated_at,
       (SELECT min(r.due_at) FROM runs r
        WHERE {of_job r j.id} AND r.kind IN {FIRINGS} AND r.parked IS NULL
          AND (r.cursor OR (r.tries = 0 AND (r.due_at > {now}
               OR (r.kind = 'redrive' AND r.node IS NULL AND r.open IS NULL AND j.one_off AND j.state = 'active'))))) AS next_run,
       s.runs, s.failures, s.timed, s.duration_ms, s.last_duration_ms, s.last_lateness_ms, s.last_status, s.last_run_id,
       s.last_finished_at AS last_run,
       CASE WHEN j.one_off THEN
           (SELECT json_agg(json_build_array(h.id, h.status, h.finished_at, h.duration_ms, h.lateness_ms)
                            ORDER BY h.finished_at DESC)::text
            FROM (SELECT * FROM history WHERE job_id = j.id AND tenant + 0 = j.tenant AND status IN ('done', 'failed')
                  ORDER BY slot DESC LIMIT 100) h)
       END AS ended_runs

-- name: columns.view
j.spec, {part viewed}

-- name: columns.listed
-- Of a list: large specs are read later, as far as the page holds them.
CASE WHEN octet_length(j.spec) <= {SMALL_BYTES} THEN j.spec END AS spec, octet_length(j.spec) AS spec_bytes, {part viewed}

-- name: joins.view
LEFT JOIN LATERAL (SELECT * FROM job_stats WHERE job_id = j.id LIMIT 1) s ON true

-- name: get_job
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = $1 AND j.id = $2;

-- name: get_job_by_key
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = $1 AND j.key = $2;

-- name: get_jobs
SELECT {columns} FROM jobs j {joins} WHERE j.tenant = $1 AND j.id = ANY($2::bigint[]);

-- name: job_names
SELECT id, COALESCE(name, key) AS name FROM jobs
WHERE tenant = $1 AND id = ANY($2::bigint[]) AND COALESCE(name, key) IS NOT NULL;

-- name: prune_jobs
-- Not those that others name to follow them: they run once more each time.
DELETE FROM jobs
WHERE id = ANY(ARRAY(
    SELECT j.id FROM jobs j
    WHERE j.state = 'ended' AND j.one_off AND j.ended_at < $1
      AND (SELECT 1 FROM runs r WHERE {of_job r j.id} ORDER BY r.id LIMIT 1) IS NULL
      AND (j.key IS NULL OR NOT EXISTS (SELECT 1 FROM job_chains c WHERE c.tenant = j.tenant AND c.target_key = j.key))
    ORDER BY j.ended_at, j.id LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING id;

-- name: prune_tags
DELETE FROM job_tags WHERE job_id = ANY($1::bigint[]);
