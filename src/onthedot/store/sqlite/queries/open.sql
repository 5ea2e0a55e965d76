-- Runs whose work goes on without a node (see `runs/open.py`).

-- name: begin_work
-- What will be started is recorded before it is; from then on the node's end does not end it. ?1 node.
UPDATE runs
SET begun_at = coalesce(begun_at, t.now), work = x.work, requires = x.requires, open_until = t.now + x.within_ms
FROM {rows BegunWork}, (SELECT {now} AS now) t
WHERE runs.id = x.id AND runs.token = x.token AND +runs.node = ?1 AND runs.orders IS NULL
RETURNING runs.id;

-- name: open_runs
-- Nobody has them any more, and they go on: with their lane, tries, losses, start and orders. (A recall is none: what has
-- begun is not given back.) Asked again because the answer was lost, the answer is the same.
UPDATE runs
SET node = NULL, open = 'adopt', claimed_at = NULL, orders = nullif(runs.orders, 'recall'),
    open_until = CASE WHEN x.left_ms IS NULL THEN runs.open_until ELSE t.now + x.left_ms END
FROM {rows OpenRun}, (SELECT {now} AS now) t
WHERE runs.id = x.id AND runs.token = x.token AND (+runs.node = x.node OR runs.open = 'adopt') AND runs.work IS NOT NULL
RETURNING runs.id;

-- name: adopt_runs
-- ?1 node, ?2 what it can reach, ?3 level, ?4 limit.
WITH n (now) AS (SELECT {now})
UPDATE runs
SET node = ?1, token = token + 1, open = NULL, claimed_at = (SELECT now FROM n)
WHERE rowid IN (
    SELECT c.rowid FROM json_each(?2) o CROSS JOIN runs c
    WHERE c.open = 'adopt' AND c.requires = o.value AND c.level <= ?3
      AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)
    LIMIT ?4
)
RETURNING {columns ClaimedRow runs now=claimed_at}, work, orders, open_until, requires, level, at_most_once;

-- name: overdue_runs
-- Their time is up; of those that can be adopted, for a while. Not locked: they go through finish, which checks the fence.
SELECT r.*, j.version, j.spec, j.anchor_at, n.now
FROM (SELECT {now} AS now) n
CROSS JOIN runs r LEFT JOIN jobs j ON j.id = r.job_id
WHERE r.open IS NOT NULL AND r.open_until <= n.now AND (r.open = 'callback' OR r.open_until <= n.now - {OVERDUE_MS})
ORDER BY r.open_until LIMIT ?1;

-- name: tries_of
-- How many tries each of these has behind it, if it is not over.
SELECT id, tries FROM runs WHERE id IN (SELECT value FROM json_each(?1));
