-- Concurrency groups (see `runs/groups.py`). There is one writer: nothing has to be locked.

-- name: lock_groups
SELECT value AS group_key FROM json_each(?1);

-- name: lock_free_groups
SELECT value AS group_key FROM json_each(?1);

-- name: add_groups
SELECT value AS group_key FROM json_each(?1);

-- name: drop_groups
/* there are no rows to lock */

-- part: in_group
-- Running ones of the group `g`; by an index of those alone.
SELECT count(*) FROM runs r WHERE r.group_key = g.value AND r.state = 'running'

-- name: group_states
-- How many are running, and how many may: the smallest limit that a job names which has a run, whenever it is due.
SELECT g.value AS group_key, ({part in_group}) AS running,
    (SELECT min(r.group_limit) FROM runs r WHERE r.group_key = g.value) AS group_limit
FROM json_each(?1) g;

-- name: called_of_groups
-- Whose turn came a moment ago, and that nobody has claimed yet.
SELECT group_key, id, due_at FROM runs
WHERE group_key IN (SELECT value FROM json_each(?1)) AND waiting = 'group' AND state = 'pending' AND parked IS NULL
  AND ready_at > {now} - {TURN_MS};

-- name: waiting_of_groups
-- The oldest that wait, ?2 of each.
SELECT g.value AS group_key, w.value ->> 0 AS id, w.value ->> 1 AS due_at
FROM json_each(?1) g CROSS JOIN json_each((
    SELECT json_group_array(json_array(o.id, o.due_at)) FROM (
        SELECT r.id, r.due_at FROM runs r WHERE r.group_key = g.value AND r.parked = 'group'
        ORDER BY r.due_at, r.id LIMIT ?2
    ) o
)) w;

-- name: wait_for_group
-- Nobody has them yet, and nothing of them changes: it is no attempt.
UPDATE runs
SET cursor = 0, parked = 'group', ready_at = {NEVER}, waiting = 'group',
    waiting_since = coalesce(runs.waiting_since, {now}), waiting_until = x.until
FROM {rows GroupWait} WHERE runs.id = x.id;

-- name: call_waiting
-- They may be claimed now.
UPDATE runs SET parked = NULL, ready_at = {now}
WHERE id IN (SELECT value FROM json_each(?1)) AND parked = 'group';

-- name: any_in_group
SELECT 1 AS there FROM runs WHERE parked = 'group' LIMIT 1;

-- name: any_expired_in_group
SELECT 1 AS there FROM runs WHERE parked = 'group' AND waiting_until <= {now} AND waiting_until IS NOT NULL LIMIT 1;

-- name: call_expired
-- Who claims them sees that they have expired.
UPDATE runs SET parked = NULL, ready_at = {now}, waiting = NULL, waiting_until = NULL
WHERE id IN (
    SELECT id FROM runs WHERE parked = 'group' AND waiting_until <= {now} AND waiting_until IS NOT NULL
    ORDER BY waiting_until LIMIT ?1
);

-- part: group_hops
-- Which groups there are between ?1 and ?2, by hopping from one to the next: ?3 at most.
SELECT * FROM (
    SELECT r.group_key, 1 FROM runs r
    WHERE {where} AND r.group_key > ?1 AND r.group_key < ?2 ORDER BY r.group_key LIMIT 1
)
UNION ALL
SELECT (SELECT r.group_key FROM runs r WHERE {where} AND r.group_key > h.group_key AND r.group_key < ?2
        ORDER BY r.group_key LIMIT 1), h.n + 1
FROM hops h WHERE h.group_key IS NOT NULL AND h.n < ?3

-- name: groups_between
WITH RECURSIVE hops (group_key, n) AS ({part group_hops})
SELECT group_key FROM hops WHERE group_key IS NOT NULL ORDER BY group_key;

-- name: where.any_of_group
r.group_key IS NOT NULL

-- name: where.waiting_for_group
r.parked = 'group'

-- name: count_groups
-- Of those that wait a thousand are counted.
SELECT g.value AS group_key, ({part in_group}) AS running,
    (SELECT min(r.group_limit) FROM runs r WHERE r.group_key = g.value) AS lowest,
    (SELECT max(r.group_limit) FROM runs r WHERE r.group_key = g.value) AS highest,
    json_array_length(w.value) AS waiting, (SELECT min(s.value) FROM json_each(w.value) s) AS since
FROM json_each(?1) g CROSS JOIN json_each(json_array((
    SELECT json_group_array(c.waiting_since) FROM (
        SELECT * FROM (
            SELECT r.waiting_since FROM runs r WHERE r.group_key = g.value AND r.parked = 'group'
            ORDER BY r.due_at, r.id LIMIT {COUNTED}
        )
        UNION ALL
        SELECT * FROM (
            SELECT r.waiting_since FROM runs r
            WHERE r.group_key = g.value AND r.waiting = 'group' AND r.state = 'pending' AND r.parked IS NULL
            LIMIT {COUNTED}
        )
    ) c
))) w
ORDER BY g.value;

-- name: count_waiting_for_groups
SELECT count(*) AS waiting, min(c.waiting_since) AS since
FROM (SELECT waiting_since FROM runs WHERE parked = 'group' LIMIT 10000) c;
