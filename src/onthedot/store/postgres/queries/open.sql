-- Runs whose work goes on without a node (see `runs/open.py`).

-- name: begin_work
-- What will be started is recorded before it is; from then on the node's end does not end it. $1 node.
UPDATE runs r
SET begun_at = coalesce(r.begun_at, t.now), work = x.work, requires = x.requires, open_until = t.now + x.within_ms
FROM {rows BegunWork}, (SELECT {now} AS now) t
WHERE r.id = x.id AND r.token = x.token AND r.node || '' = $1 AND r.orders IS NULL
RETURNING r.id;

-- name: open_runs
-- Nobody has them any more, and they go on: with their lane, tries, losses, start and orders. (A recall is none: what has
-- begun is not given back.) Asked again because the answer was lost, the answer is the same.
UPDATE runs r
SET node = NULL, open = 'adopt', claimed_at = NULL, orders = nullif(r.orders, 'recall'),
    open_until = CASE WHEN x.left_ms IS NULL THEN r.open_until ELSE t.now + x.left_ms END
FROM {rows OpenRun}, (SELECT {now} AS now) t
WHERE r.id = x.id AND r.token = x.token AND (r.node || '' = x.node OR r.open = 'adopt') AND r.work IS NOT NULL
RETURNING r.id;

-- name: adopt_runs
-- $1 node, $2 what it can reach, $3 level, $4 limit. No lock of a job, and no wait: as a claim.
UPDATE runs r
SET node = $1, token = r.token + 1, open = NULL, claimed_at = t.now
FROM (SELECT {now} AS now) t
WHERE r.id = ANY (ARRAY(
    SELECT p.id FROM unnest($2::text[]) AS o (requires)
    CROSS JOIN LATERAL (
        SELECT c.id FROM runs c WHERE c.open = 'adopt' AND c.requires = o.requires AND c.level <= $3
        LIMIT $4::bigint FOR UPDATE SKIP LOCKED
    ) p
    WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL)
    LIMIT $4::bigint
))
RETURNING {columns ClaimedRow r now=t.now}, r.work, r.orders, r.open_until, r.requires, r.level, r.at_most_once;

-- name: overdue_runs
-- Their time is up; of those that can be adopted, for a while. Not locked: they go through finish, which checks the fence.
SELECT r.*, (SELECT version FROM jobs WHERE id = r.job_id) AS version, (SELECT spec FROM jobs WHERE id = r.job_id) AS spec,
    (SELECT anchor_at FROM jobs WHERE id = r.job_id) AS anchor_at,
    n.now
FROM (SELECT {now} AS now) n
CROSS JOIN LATERAL (
    SELECT * FROM runs
    WHERE open IS NOT NULL AND open_until <= n.now AND (open = 'callback' OR open_until <= n.now - {OVERDUE_MS})
    ORDER BY open_until LIMIT $1
) r;

-- name: tries_of
-- How many tries each of these has behind it, if it is not over.
SELECT id, tries FROM runs WHERE id = ANY ($1::text[]);
