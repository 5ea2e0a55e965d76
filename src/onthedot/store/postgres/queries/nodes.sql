-- Nodes: one row per process incarnation. Who is lost is decided by watching beats, never by comparing times.

-- name: register_node
INSERT INTO nodes (id, name, host, pid, version, level, roles, offers, labels, capacity, binding,
    exposed, started_at, beat_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, {now}, {now})
RETURNING started_at;

-- name: beat
/* beat_at_once */

-- name: peers
/* beat_at_once */

-- name: beat_at_once
-- I am here; and what a node wants to know each second, in the same round trip. `orphaned` looks where `orphans` and
-- `overdue_runs` do.
WITH me AS (
    UPDATE nodes SET beat = beat + 1, beat_at = {now}, held = $2, running = $3, lateness_ms = $4, draining = draining OR $5,
        offers = coalesce($6, offers), capacity = coalesce($7, capacity),
        destinations = $8, clock_skew_ms = $9
    WHERE id = $1 AND lost_at IS NULL
    RETURNING beat_at, draining
)
SELECT coalesce((SELECT beat_at FROM me), {now}) AS now, EXISTS (SELECT 1 FROM me) AS alive,
    coalesce((SELECT draining FROM me), false) AS draining,
    EXISTS (SELECT 1 FROM runs WHERE node = $1 AND orders IS NOT NULL AND state = 'running') AS ordered,
    EXISTS (
        SELECT 1 FROM (
            SELECT lag(id, 1, '') OVER (ORDER BY id) AS after, id AS before FROM nodes WHERE lost_at IS NULL
        ) live
        CROSS JOIN LATERAL (
            SELECT 1 FROM runs WHERE state = 'running' AND node > live.after AND node < live.before LIMIT 1
        ) between_two
    ) OR EXISTS (
        SELECT 1 FROM runs
        WHERE state = 'running' AND node > (SELECT coalesce(max(id), '') FROM nodes WHERE lost_at IS NULL)
    ) OR EXISTS (
        SELECT 1 FROM (SELECT {now} AS now OFFSET 0) n CROSS JOIN LATERAL (
            SELECT 1 FROM runs
            WHERE open IS NOT NULL AND open_until <= n.now AND (open = 'callback' OR open_until <= n.now - {OVERDUE_MS})
            LIMIT 1
        ) overdue
    ) AS orphaned,
    EXISTS (SELECT 1 FROM runs WHERE open = 'adopt') AS adoptable,
    EXISTS (SELECT 1 FROM notes) AS noted,
    EXISTS (SELECT 1 FROM runs WHERE parked = 'group') AS grouped,
    NOT EXISTS (SELECT 1 FROM api_keys) AND NOT EXISTS (SELECT 1 FROM nodes WHERE lost_at IS NULL AND exposed) AS open,
    ARRAY(
        SELECT DISTINCT n.binding FROM nodes n JOIN nodes i ON i.id = $1 AND i.host = n.host
        WHERE n.lost_at IS NULL AND n.binding IS NOT NULL ORDER BY 1
    ) AS bindings,
    ARRAY(SELECT id FROM nodes WHERE lost_at IS NULL AND id <> $1 ORDER BY id) AS peers,
    ARRAY(SELECT beat FROM nodes WHERE lost_at IS NULL AND id <> $1 ORDER BY id) AS beats;

-- name: drain
-- It stays so: a node that is started again has a row of its own.
UPDATE nodes SET draining = true WHERE id = $1 AND lost_at IS NULL;

-- name: bindings
/* beat_at_once */

-- name: adoptable
/* beat_at_once */

-- name: is_open
-- No key was ever made (revoked ones count) and no live node's API is reached by others or asks for keys.
SELECT NOT EXISTS (SELECT 1 FROM api_keys)
    AND NOT EXISTS (SELECT 1 FROM nodes WHERE lost_at IS NULL AND exposed) AS open;

-- name: end_transactions_of
-- A node whose beat stands still may have been frozen inside COPY, or between preparing and executing: only the end of
-- its connection makes the server let go of what it locked there. It has lost its lease, so it could write nothing more.
-- Only what a node of ours may end, with any rights: the connections of its own role.
SELECT pg_terminate_backend(a.pid) AS ended
FROM nodes n CROSS JOIN LATERAL (SELECT ' ' || left(n.pid || '@' || n.host, {LONGEST_PROCESS}) AS name) process
JOIN pg_stat_activity a ON right(a.application_name, length(process.name)) = process.name
WHERE n.id = $1 AND n.beat = $2 AND n.lost_at IS NULL
    AND a.datname = current_database() AND a.usename = current_user
    AND a.xact_start < clock_timestamp() - interval '1 second';

-- name: declare_lost
UPDATE nodes SET lost_at = {now} WHERE id = $1 AND beat = $2 AND lost_at IS NULL;

-- name: leave
DELETE FROM nodes WHERE id = $1;

-- name: remember_nodes
-- Names of all, or of this one, for runs that refer to them later. Once an hour, not with every look.
INSERT INTO node_names AS known (id, name, seen_at)
SELECT id, name, beat_at FROM nodes WHERE $1::text IS NULL OR id = $1
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at WHERE excluded.seen_at >= known.seen_at + {NAME_NOTED_MS};

-- name: names_of_nodes
SELECT id, name FROM nodes WHERE id = ANY ($1::text[])
UNION SELECT id, name FROM node_names WHERE id = ANY ($1::text[]);

-- name: list_nodes
SELECT n.*, EXISTS (
    SELECT 1 FROM duties d WHERE d.node = n.id AND d.taken_at <= {now} AND d.taken_at > {now} - {DUTY_MS}
) AS leader
FROM nodes n ORDER BY n.started_at, n.id;

-- name: offers
SELECT offers, labels FROM nodes WHERE lost_at IS NULL;

-- name: take_duty
-- A duty is free if nobody has it, if its holder is gone, if it was not renewed for so long, or if its stamp lies in the
-- future (the clock was set back: otherwise nobody would do it until then).
INSERT INTO duties AS d (name, node, taken_at) VALUES ($1, $2, {now})
ON CONFLICT (name) DO UPDATE SET node = excluded.node, taken_at = excluded.taken_at
WHERE d.node = excluded.node OR d.taken_at <= {now} - {DUTY_MS} OR d.taken_at > {now}
   OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = d.node AND n.lost_at IS NULL)
RETURNING d.node;

-- name: drop_duties
DELETE FROM duties WHERE node = $1;

-- name: take_reclaim_turn
-- Until the end of the transaction, among the nodes of this store: another one may be in another schema.
SELECT 1 AS mine WHERE pg_try_advisory_xact_lock(hashtextextended('reclaim', 'runs'::regclass::oid::bigint));

-- name: orphans
-- Running rows of lost or unknown nodes; open ones have no node and are nobody's orphans. Not locked: they go through
-- finish, which checks the fence. Looked for between the ids of the live ones, whose own runs, however many, are not
-- read: 2,000 of them were 20 ms each second. OFFSET keeps the planner, which takes them for one, from reading them all
-- and comparing.
SELECT r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.node, r.token, r.tries, r.losses, r.at_most_once,
    r.begun_at, r.orders, r.attempts, r.work, r.requires, r.level, (SELECT version FROM jobs WHERE id = r.job_id) AS version,
    (SELECT spec FROM jobs WHERE id = r.job_id) AS spec, {now} AS now
FROM (
    SELECT o.* FROM (
        SELECT lag(id, 1, '') OVER (ORDER BY id) AS after, id AS before FROM nodes WHERE lost_at IS NULL
    ) live
    CROSS JOIN LATERAL (
        SELECT * FROM runs WHERE state = 'running' AND node > live.after AND node < live.before OFFSET 0
    ) o
    UNION ALL
    SELECT * FROM runs
    WHERE state = 'running' AND node > (SELECT coalesce(max(id), '') FROM nodes WHERE lost_at IS NULL)
) r
ORDER BY r.id LIMIT $1;
