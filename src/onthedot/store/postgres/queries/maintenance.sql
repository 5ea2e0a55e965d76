-- Duties: old things go, days to come get their partition; and the numbers an operator looks at.

-- name: history_partitions
SELECT c.relname::text AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'history'::regclass ORDER BY c.relname;

-- name: prune_history
DELETE FROM history_default WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM history_default WHERE slot < $1 ORDER BY slot LIMIT $2
));

-- name: prune_logs
DELETE FROM run_logs WHERE run_id = ANY (ARRAY(
    SELECT run_id FROM run_logs WHERE updated_at < $1 ORDER BY updated_at LIMIT $2
));

-- name: prune_refused
DELETE FROM refused_results WHERE run_id = ANY (ARRAY(
    SELECT run_id FROM refused_results WHERE refused_at < $1 ORDER BY refused_at LIMIT $2
)) AND refused_at < $1;

-- name: prune_run_params
-- Not those of runs that are still to come: one by hand may wait in its lane for long.
DELETE FROM run_params WHERE run_id = ANY (ARRAY(
    SELECT p.run_id FROM run_params p
    WHERE p.created_at < $1 AND (SELECT 1 FROM runs r WHERE r.id = p.run_id LIMIT 1) IS NULL
    ORDER BY p.created_at LIMIT $2
));

-- name: prune_run_actors
-- Not those of runs that are still to come: one by hand may wait in its lane for long.
DELETE FROM run_actors WHERE run_id = ANY (ARRAY(
    SELECT a.run_id FROM run_actors a
    WHERE a.created_at < $1 AND (SELECT 1 FROM runs r WHERE r.id = a.run_id LIMIT 1) IS NULL
    ORDER BY a.created_at LIMIT $2
));

-- name: prune_dead
DELETE FROM dead_letters WHERE run_id = ANY (ARRAY(
    SELECT run_id FROM dead_letters WHERE slot < $1 ORDER BY slot LIMIT $2
));

-- name: prune_nodes
DELETE FROM nodes n WHERE n.lost_at < $1 AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.node = n.id AND r.state = 'running');

-- name: prune_node_names
DELETE FROM node_names WHERE id = ANY (ARRAY(
    SELECT id FROM node_names WHERE seen_at < $1 ORDER BY seen_at LIMIT $2
));

-- name: stuck_lanes
-- Lanes in which somebody waits and nobody runs or is about to: there should be none.
SELECT DISTINCT w.lane FROM runs w
WHERE w.parked = 'lane'
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.lane = w.lane AND r.lane > 0 AND r.state = 'running')
  AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.lane = w.lane AND r.lane > 0 AND r.waiting = 'group' AND r.state = 'pending')
  AND (SELECT 1 FROM runs r
       WHERE {of_job r w.lane} AND r.lane = w.lane AND r.state = 'pending' AND r.ready_at <= {now}
       ORDER BY r.id LIMIT 1) IS NULL;

-- name: job_after
-- How far one look goes that begins after $1: over $2 jobs.
SELECT id FROM jobs WHERE id > $1 ORDER BY id LIMIT 1 OFFSET $2 - 1;

-- name: silent_jobs
-- Active recurring jobs without a cursor, from $1 to $2: there should be none. Cursor by cursor: as an anti-join the
-- planner reads those of all jobs for it.
SELECT j.id FROM jobs j
WHERE j.id > $1 AND j.id <= $2 AND j.state = 'active' AND NOT j.one_off
  AND (SELECT 1 FROM runs r WHERE r.job_id = j.id AND r.cursor LIMIT 1) IS NULL
ORDER BY j.id LIMIT 100;

-- part: last_of_kind
-- All that wait for destinations with one capability are one kind, however many destinations there are. `A` follows `@`.
CASE WHEN strpos(requires, '@') = 0 THEN requires ELSE split_part(requires, '@', 1) || 'A' END COLLATE "C"

-- name: backlog
-- What is due, kind by kind. The kinds are found by hopping through the index, and each is counted to 10,000 at most:
-- neither a million runs to come nor a million late ones make this slow.
WITH RECURSIVE kinds AS (
    (SELECT requires, {part last_of_kind} AS last FROM runs c WHERE {where} ORDER BY requires LIMIT 1)
    UNION ALL
    SELECT n.requires, n.last FROM kinds k CROSS JOIN LATERAL (
        SELECT requires, {part last_of_kind} AS last FROM runs c
        WHERE {where} AND requires > k.last ORDER BY requires LIMIT 1
    ) n
)
SELECT k.requires, count(*) AS due, min(d.due_at) AS oldest
FROM kinds k
CROSS JOIN (VALUES (false), (true)) AS w (backlog)
CROSS JOIN LATERAL (
    SELECT due_at FROM runs c
    WHERE {where} AND requires = k.requires AND backlog = w.backlog AND ready_at <= $1 AND due_at <= $1
    ORDER BY ready_at LIMIT 10000
) d
WHERE k.last = k.requires
GROUP BY k.requires, w.backlog
UNION ALL
SELECT split_part(k.requires, '@', 1) || '@', count(*), min(d.due_at)
FROM kinds k
CROSS JOIN LATERAL (
    SELECT due_at FROM runs c
    WHERE {where} AND requires >= k.requires AND requires < k.last AND ready_at <= $1 AND due_at <= $1 LIMIT 10000
) d
WHERE k.last <> k.requires
GROUP BY k.requires;

-- name: open_places
-- Where work goes on that no node has, and how much of it.
SELECT requires, count(*) AS n FROM runs WHERE open = 'adopt' GROUP BY requires;

-- name: required
-- What pending runs require, by hopping from one to the next after $1: $2 at most.
WITH RECURSIVE hops AS (
    (SELECT requires, {part last_of_kind} AS last, 1 AS n FROM runs c
     WHERE {where} AND requires > $1 ORDER BY requires LIMIT 1)
    UNION ALL
    SELECT f.requires, f.last, h.n + 1 FROM hops h CROSS JOIN LATERAL (
        SELECT requires, {part last_of_kind} AS last FROM runs c
        WHERE {where} AND requires > h.last ORDER BY requires LIMIT 1
    ) f
    WHERE h.n < $2
)
SELECT requires FROM hops;

-- name: where.free_runs
{part free}

-- name: where.cursor_runs
{part cursors}

-- name: where.lane_runs
{part lanes}

-- name: count_running
SELECT count(*) AS n FROM runs WHERE state = 'running';

-- name: count_jobs
-- By state; what has ended and is not closed yet counts as ended. In one statement: it may be closed at any moment.
WITH over (state, n) AS (
    SELECT j.state, count(*) FROM ({part noted}) n CROSS JOIN LATERAL (SELECT * FROM jobs WHERE id = n.id AND tenant = $1 LIMIT 1) j WHERE {part over} GROUP BY j.state
)
SELECT state, sum(n)::bigint AS n FROM (
    SELECT state, count(*) AS n FROM jobs WHERE tenant = $1 GROUP BY state
    UNION ALL SELECT state, -n FROM over
    UNION ALL SELECT 'ended', n FROM over
) counted GROUP BY state HAVING sum(n) > 0;

-- name: count_live
SELECT state, count(*) AS n FROM runs WHERE tenant = $1 GROUP BY state;

-- name: count_dead
SELECT count(*) AS n FROM dead_letters WHERE tenant = $1;

-- name: count_ended
-- By status since an instant, of the newest 100,000 at most.
SELECT h.status, count(*) AS n
FROM (SELECT status FROM history WHERE tenant = $1 AND slot >= $2 ORDER BY slot DESC LIMIT 100000) h
GROUP BY h.status;
