-- Runs as people see them: live and history, newest slot first. Lists are cut before they are joined: the key comes by a
-- subquery, so that no plan joins first and cuts after. (slot, id) is where the page before ended.

-- part: live_run
r.id, r.job_id, r.slot, r.kind, r.state, r.due_at, r.parked, r.token, r.tries, r.losses, r.node, r.begun_at,
    r.attempts, r.parent, r.claimed_at, r.open, r.progress, r.waiting, r.waiting_since, r.requires, r.ready_at, r.group_key,
    (SELECT j.key FROM jobs j WHERE j.id = r.job_id) AS key,
    CASE WHEN r.kind IN {ASKED_KINDS} THEN (SELECT a.actor FROM run_actors a WHERE a.run_id = r.id) END AS asked_by

-- part: live
{part live_run},
    CASE WHEN r.kind <> 'scheduled' THEN (SELECT p.params FROM run_params p WHERE p.run_id = r.id) END AS params

-- part: live_listed
-- Large params are read later, as far as the page holds them.
{part live_run},
    CASE WHEN r.kind <> 'scheduled' THEN (SELECT p.params FROM run_params p
        WHERE p.run_id = r.id AND octet_length(p.params) <= {SMALL_BYTES}) END AS params,
    CASE WHEN r.kind <> 'scheduled' THEN (SELECT octet_length(p.params) FROM run_params p
        WHERE p.run_id = r.id) END AS params_bytes

-- part: ended_run
-- Without `result`, a large one of up to 64 KB: a list does not read it. Small ones are in the outcome.
h.id, h.job_id, h.slot, h.kind, h.due_at, h.status, h.reason, h.token, h.tries, h.losses, h.node, h.started_at,
    h.finished_at, h.lateness_ms, h.duration_ms, h.outcome, h.error, h.attempts, h.parent, h.until_slot, h.slots,
    h.claimed_at,
    (SELECT j.key FROM jobs j WHERE j.id = h.job_id) AS key,
    CASE WHEN h.kind IN {ASKED_KINDS} THEN (SELECT a.actor FROM run_actors a WHERE a.run_id = h.id) END AS asked_by

-- part: ended
{part ended_run},
    CASE WHEN h.kind <> 'scheduled' THEN (SELECT p.params FROM run_params p WHERE p.run_id = h.id) END AS params

-- part: ended_listed
-- Large params are read later, as far as the page holds them; of a large result only that there is one.
{part ended_run},
    CASE WHEN h.kind <> 'scheduled' THEN (SELECT p.params FROM run_params p
        WHERE p.run_id = h.id AND octet_length(p.params) <= {SMALL_BYTES}) END AS params,
    CASE WHEN h.kind <> 'scheduled' THEN (SELECT octet_length(p.params) FROM run_params p
        WHERE p.run_id = h.id) END AS params_bytes,
    h.result IS NOT NULL AS large_result

-- name: list_pending
-- By two indexes: runs_next has the cursors that are due at their slot, runs_listed the others.
SELECT {part live_listed}
FROM (
    (SELECT * FROM runs r
     WHERE r.cursor AND r.parked IS NULL AND r.due_at = r.slot AND r.state = 'pending'
       AND r.tenant = $1 AND r.slot >= $2 AND r.slot <= $3 AND (r.slot, r.id) < ($4::bigint, $5::text) AND r.due_at <= $6
     ORDER BY r.slot DESC, r.id DESC LIMIT $7)
    UNION ALL
    (SELECT * FROM runs r
     WHERE r.state = 'pending' AND NOT (r.cursor AND r.parked IS NULL AND r.due_at = r.slot)
       AND r.tenant = $1 AND r.slot >= $2 AND r.slot <= $3 AND (r.slot, r.id) < ($4::bigint, $5::text) AND r.due_at <= $6
     ORDER BY r.slot DESC, r.id DESC LIMIT $7)
) r
ORDER BY r.slot DESC, r.id DESC LIMIT $7;

-- name: list_pending_of_job
-- All that the job has pending is read and sorted.
SELECT {part live_listed}
FROM runs r
WHERE {of_job r $8} AND r.state = 'pending' AND r.tenant + 0 = $1
  AND r.slot >= $2 AND r.slot <= $3 AND (r.slot, r.id) < ($4::bigint, $5::text)
  AND r.due_at <= $6
ORDER BY r.slot DESC, r.id DESC LIMIT $7;

-- part: running
-- $6 'PENDING': those held ahead; 'EXECUTING': the others; null: all.
r.tenant = $1 AND r.slot >= $2 AND r.slot <= $3 AND (r.slot, r.id) < ($4::bigint, $5::text)
AND ($6::text IS NULL OR (r.begun_at IS NOT NULL OR r.due_at <= $8) = ($6 = 'EXECUTING'))

-- name: list_running
-- As many as the nodes can hold: they are read and sorted. Open ones, of which there may be any number, by their index.
SELECT {part live_listed}
FROM (
    (SELECT * FROM runs r
     WHERE r.state = 'running' AND r.node IS NOT NULL AND {part running}
     ORDER BY r.slot DESC, r.id DESC LIMIT $7)
    UNION ALL
    (SELECT * FROM runs r WHERE r.open IS NOT NULL AND {part running} ORDER BY r.slot DESC, r.id DESC LIMIT $7)
) r
ORDER BY r.slot DESC, r.id DESC LIMIT $7;

-- name: list_running_of_job
-- All that the job has is read and sorted.
SELECT {part live_listed} FROM runs r
WHERE {of_job r $9} AND r.state = 'running' AND {part running}
ORDER BY r.slot DESC, r.id DESC LIMIT $7;

-- name: list_history
SELECT {part ended_listed}
FROM history h {by}
WHERE {part ended_in} AND {where}
ORDER BY h.slot DESC, h.id DESC LIMIT $6;

-- name: list_history_of_job
SELECT {part ended_listed}
FROM history h {by}
WHERE {part ended_of_job} AND {where}
ORDER BY h.slot DESC, h.id DESC LIMIT $7;

-- part: ended_in
h.tenant = $1 AND h.slot >= $2 AND h.slot <= $3 AND (h.slot, h.id) < ($4::bigint, $5::text)

-- part: ended_of_job
h.tenant + 0 = $1 AND h.job_id = $6 AND h.slot >= $2 AND h.slot <= $3 AND (h.slot, h.id) < ($4::bigint, $5::text)

-- name: find_history
-- Those of the first $7 that pass what no index serves.
SELECT {part ended_listed}
FROM (
    SELECT * FROM history h {by} WHERE {part ended_in} AND {where} ORDER BY h.slot DESC, h.id DESC LIMIT $7
) h
WHERE {only}
ORDER BY h.slot DESC, h.id DESC LIMIT $6;

-- name: find_history_of_job
SELECT {part ended_listed}
FROM (
    SELECT * FROM history h {by} WHERE {part ended_of_job} AND {where} ORDER BY h.slot DESC, h.id DESC LIMIT $8
) h
WHERE {only}
ORDER BY h.slot DESC, h.id DESC LIMIT $7;

-- name: reach_history
-- The last that such a page looks at, if there are so many.
SELECT h.slot, h.id FROM history h {by}
WHERE {part ended_in} AND {where}
ORDER BY h.slot DESC, h.id DESC LIMIT 1 OFFSET $6;

-- name: reach_history_of_job
SELECT h.slot, h.id FROM history h {by}
WHERE {part ended_of_job} AND {where}
ORDER BY h.slot DESC, h.id DESC LIMIT 1 OFFSET $7;

-- name: only.done
h.status = 'done'

-- name: only.error
strpos(lower(coalesce(h.error, '') || chr(10) || coalesce(h.reason, '')), lower($1::text)) > 0

-- name: only.node
h.node = $1

-- name: only.kind
h.kind = $1

-- name: only.late
h.lateness_ms > {LATE_MS}

-- name: only.not_late
coalesce(h.lateness_ms, 0) <= {LATE_MS}

-- name: by.not_done
/* by history_not_done, which the planner finds by itself */

-- name: by.job_not_done
/* by history_of_job_not_done, which the planner finds by itself */

-- name: where.all_of_history
true

-- name: where.not_done
h.status = $1 AND h.status <> 'done'

-- name: get_live
SELECT {part live}, {now} AS now
FROM runs r WHERE r.id = $2 AND r.tenant = $1;

-- name: get_ended
SELECT {part ended}, h.result
FROM history h WHERE h.tenant = $1 AND h.slot = $3 AND h.id = $2;

-- name: get_log
SELECT log FROM run_logs WHERE run_id = $2 AND tenant = $1;

-- name: add_params
INSERT INTO run_params (run_id, tenant, params, created_at) VALUES ($1, $2, $3, $4);

-- name: replace_params
-- A run that is driven again with others: what it has copied goes.
INSERT INTO run_params (run_id, tenant, params, created_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (run_id) DO UPDATE SET params = excluded.params;

-- name: copy_params
-- A run that is driven again has what it had.
INSERT INTO run_params (run_id, tenant, params, created_at, depth)
SELECT x.id, p.tenant, p.params, $1::bigint, p.depth FROM {rows DrivenRun} JOIN run_params p ON p.run_id = x.former;

-- name: note_actors
-- Who asked for these runs.
INSERT INTO run_actors ({columns AskedRun}) SELECT {columns AskedRun x} FROM {rows AskedRun};

-- name: params_of
SELECT run_id, params FROM run_params WHERE run_id = ANY ($1::text[]);

-- name: run_at_present
-- Of the live runs of a job the one that executes, else the one that is due first.
SELECT {part live}, {now} AS now
FROM runs r WHERE {of_job r $2} AND r.tenant + 0 = $1
ORDER BY (r.state = 'running' AND (r.begun_at IS NOT NULL OR r.due_at <= {now})) DESC, r.due_at, r.id LIMIT 1;

-- name: recent_runs
-- The last $3 that ended of each of these jobs, the newest slot first.
SELECT x.job_id, h.id, h.slot, h.status, h.reason, h.error, h.lateness_ms, h.duration_ms
FROM unnest($2::bigint[]) AS x (job_id) CROSS JOIN LATERAL (
    SELECT * FROM history h WHERE h.job_id = x.job_id AND h.tenant + 0 = $1 ORDER BY h.slot DESC, h.id DESC LIMIT $3
) h
ORDER BY x.job_id, h.slot DESC, h.id DESC;
