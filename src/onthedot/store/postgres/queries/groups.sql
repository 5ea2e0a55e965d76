-- Concurrency groups (see `runs/groups.py`). Who decides about a group has its row in `run_groups` locked.

-- name: lock_groups
SELECT group_key FROM run_groups WHERE group_key = ANY ($1::text[]) ORDER BY group_key FOR UPDATE;

-- name: lock_free_groups
-- Without waiting: what another transaction has locked is left out.
SELECT group_key FROM run_groups WHERE group_key = ANY ($1::text[]) ORDER BY group_key FOR UPDATE SKIP LOCKED;

-- name: add_groups
-- Those that nobody has locked before; in their order, because two who add the same wait for each other.
INSERT INTO run_groups (group_key)
SELECT x.group_key FROM unnest($1::text[]) AS x (group_key) ORDER BY x.group_key
ON CONFLICT DO NOTHING
RETURNING group_key;

-- name: drop_groups
-- Those that no run names any more. Not one that somebody has in hand.
DELETE FROM run_groups WHERE group_key = ANY (ARRAY(
    SELECT g.group_key FROM run_groups g
    WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.group_key = g.group_key)
    LIMIT $1 FOR UPDATE SKIP LOCKED
));

-- part: in_group
-- Running ones of the group `g`; by an index of those alone.
SELECT count(*) FROM runs r WHERE r.group_key = g.group_key AND r.group_key IS NOT NULL AND r.state = 'running'

-- name: group_states
-- How many are running, and how many may: the smallest limit that a job names which has a run, whenever it is due.
SELECT g.group_key, ({part in_group}) AS running,
    (SELECT min(r.group_limit) FROM runs r WHERE r.group_key = g.group_key AND r.group_key IS NOT NULL) AS group_limit
FROM unnest($1::text[]) AS g (group_key);

-- name: called_of_groups
-- Whose turn came a moment ago, and that nobody has claimed yet.
SELECT group_key, id, due_at FROM runs
WHERE group_key = ANY ($1::text[]) AND waiting = 'group' AND state = 'pending' AND parked IS NULL
  AND ready_at > {now} - {TURN_MS};

-- name: waiting_of_groups
-- The oldest that wait, $2 of each.
SELECT g.group_key, w.id, w.due_at
FROM unnest($1::text[]) AS g (group_key)
CROSS JOIN LATERAL (
    SELECT r.id, r.due_at FROM runs r WHERE r.group_key = g.group_key AND r.parked = 'group'
    ORDER BY r.due_at, r.id LIMIT $2::bigint
) w;

-- name: wait_for_group
-- Nobody has them yet, and nothing of them changes: it is no attempt.
UPDATE runs r
SET cursor = false, parked = 'group', ready_at = {NEVER}, waiting = 'group',
    waiting_since = coalesce(r.waiting_since, {now}), waiting_until = x.until
FROM {rows GroupWait} WHERE r.id = x.id;

-- name: call_waiting
-- They may be claimed now. One that a verb has in hand is left to that.
UPDATE runs SET parked = NULL, ready_at = {now}
WHERE id = ANY (ARRAY(SELECT id FROM runs WHERE id = ANY ($1::text[]) AND parked = 'group' FOR UPDATE SKIP LOCKED));

-- name: any_in_group
/* beat_at_once */

-- name: any_expired_in_group
SELECT 1 AS there FROM runs WHERE parked = 'group' AND waiting_until <= {now} AND waiting_until IS NOT NULL LIMIT 1;

-- name: call_expired
-- Who claims them sees that they have expired.
UPDATE runs SET parked = NULL, ready_at = {now}, waiting = NULL, waiting_until = NULL
WHERE id = ANY (ARRAY(
    SELECT id FROM runs WHERE parked = 'group' AND waiting_until <= {now} AND waiting_until IS NOT NULL
    ORDER BY waiting_until LIMIT $1 FOR UPDATE SKIP LOCKED
));

-- part: group_hops
-- Which groups there are between $1 and $2, by hopping from one to the next: $3 at most.
(SELECT r.group_key, 1 AS n FROM runs r
 WHERE {where} AND r.group_key > $1 AND r.group_key < $2 ORDER BY r.group_key LIMIT 1)
UNION ALL
SELECT (SELECT r.group_key FROM runs r WHERE {where} AND r.group_key > h.group_key AND r.group_key < $2
        ORDER BY r.group_key LIMIT 1), h.n + 1
FROM hops h WHERE h.group_key IS NOT NULL AND h.n < $3

-- name: groups_between
WITH RECURSIVE hops AS ({part group_hops})
SELECT group_key FROM hops WHERE group_key IS NOT NULL ORDER BY group_key;

-- name: where.any_of_group
r.group_key IS NOT NULL

-- name: where.waiting_for_group
r.parked = 'group'

-- name: count_groups
-- Of those that wait a thousand are counted.
SELECT g.group_key, ({part in_group}) AS running,
    (SELECT min(r.group_limit) FROM runs r WHERE r.group_key = g.group_key AND r.group_key IS NOT NULL) AS lowest,
    (SELECT max(r.group_limit) FROM runs r WHERE r.group_key = g.group_key AND r.group_key IS NOT NULL) AS highest,
    w.waiting, w.since
FROM unnest($1::text[]) AS g (group_key)
CROSS JOIN LATERAL (
    SELECT count(*) AS waiting, min(c.waiting_since) AS since FROM (
        (SELECT r.waiting_since FROM runs r WHERE r.group_key = g.group_key AND r.parked = 'group'
         ORDER BY r.due_at, r.id LIMIT {COUNTED})
        UNION ALL
        (SELECT r.waiting_since FROM runs r
         WHERE r.group_key = g.group_key AND r.waiting = 'group' AND r.state = 'pending' AND r.parked IS NULL
         LIMIT {COUNTED})
    ) c
) w
ORDER BY g.group_key;

-- name: count_waiting_for_groups
SELECT count(*) AS waiting, min(c.waiting_since) AS since
FROM (SELECT waiting_since FROM runs WHERE parked = 'group' LIMIT 10000) c;
