-- Nodes: one row per process incarnation. Who is lost is decided by watching beats, never by comparing times.

-- name: register_node
INSERT INTO nodes (id, name, host, pid, version, level, roles, offers, labels, capacity, binding,
    exposed, started_at, beat_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, {now}, {now})
RETURNING started_at;

-- name: beat
UPDATE nodes SET beat = beat + 1, beat_at = {now}, held = ?2, running = ?3, lateness_ms = ?4, draining = draining OR ?5,
    offers = coalesce(?6, offers), capacity = coalesce(?7, capacity), destinations = ?8,
    clock_skew_ms = ?9
WHERE id = ?1 AND lost_at IS NULL
RETURNING beat_at AS now, draining;

-- name: drain
-- It stays so: a node that is started again has a row of its own.
UPDATE nodes SET draining = 1 WHERE id = ?1 AND lost_at IS NULL;

-- name: peers
SELECT id, beat FROM nodes WHERE lost_at IS NULL AND id <> ?1 ORDER BY id;

-- name: beat_at_once
/* beat, peers, bindings, is_open, news_of and orphans: no statement here both writes and tells of other tables, and there are no round trips to save */

-- name: bindings
SELECT DISTINCT n.binding FROM nodes n JOIN nodes i ON i.id = ?1 AND i.host = n.host
WHERE n.lost_at IS NULL AND n.binding IS NOT NULL ORDER BY 1;

-- name: adoptable
SELECT 1 AS there FROM runs WHERE open = 'adopt' LIMIT 1;

-- name: is_open
-- No key was ever made (revoked ones count) and no live node's API is reached by others or asks for keys.
SELECT NOT EXISTS (SELECT 1 FROM api_keys)
    AND NOT EXISTS (SELECT 1 FROM nodes WHERE lost_at IS NULL AND exposed) AS open;

-- name: end_transactions_of
/* there is one process */

-- name: declare_lost
UPDATE nodes SET lost_at = {now} WHERE id = ?1 AND beat = ?2 AND lost_at IS NULL;

-- name: leave
DELETE FROM nodes WHERE id = ?1;

-- name: remember_nodes
-- Names of all, or of this one, for runs that refer to them later. Once an hour, not with every look.
INSERT INTO node_names AS known (id, name, seen_at)
SELECT id, name, beat_at FROM nodes WHERE ?1 IS NULL OR id = ?1
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at WHERE excluded.seen_at >= known.seen_at + {NAME_NOTED_MS};

-- name: names_of_nodes
SELECT id, name FROM nodes WHERE id IN (SELECT value FROM json_each(?1))
UNION SELECT id, name FROM node_names WHERE id IN (SELECT value FROM json_each(?1));

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
INSERT INTO duties AS d (name, node, taken_at) VALUES (?1, ?2, {now})
ON CONFLICT (name) DO UPDATE SET node = excluded.node, taken_at = excluded.taken_at
WHERE d.node = excluded.node OR d.taken_at <= {now} - {DUTY_MS} OR d.taken_at > {now}
   OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = d.node AND n.lost_at IS NULL)
RETURNING node;

-- name: drop_duties
DELETE FROM duties WHERE node = ?1;

-- name: take_reclaim_turn
-- There is one writer.
SELECT 1 AS mine;

-- name: orphans
-- Running rows of lost or unknown nodes; open ones have no node and are nobody's orphans. Not locked: they go through finish, which checks the fence.
SELECT r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.node, r.token, r.tries, r.losses, r.at_most_once,
    r.begun_at, r.orders, r.attempts, r.work, r.requires, r.level, j.version, j.spec, {now} AS now
FROM runs r LEFT JOIN jobs j ON j.id = r.job_id
WHERE r.state = 'running' AND r.node IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = r.node AND n.lost_at IS NULL)
ORDER BY r.id LIMIT ?1;
