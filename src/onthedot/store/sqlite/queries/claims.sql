-- Claims. Each of the three looks into its own index (runs_free, runs_cursors, runs_lanes), kind by kind of what the node
-- offers and window by window: on time, over a minute late, backlog. json_each over a subquery that names the tables before
-- it is what SQLite has for LATERAL: without a limit on each branch a backlog of a million is read whole. `{now}` is a call
-- into Python: asked once and not for each row, and rows by rowid, a claimed run costs 11 µs instead of 15.

-- name: claim_free
-- Runs that need no lock but their own: one-offs, retries, what was asked for by hand. ?1 node, ?2 offers, ?3 level,
-- ?4 limit, ?5 how many of them may be late or backlog, ?6 no need to look at ready_at below this.
WITH n (now) AS (SELECT {now}),
    w (backlog, low, high, late) AS (
        SELECT 0, max(?6, now - 60000), now, 0 FROM n
        UNION ALL SELECT 0, ?6, now - 60000, 1 FROM n
        UNION ALL SELECT 1, ?6, now, 1 FROM n
    ),
    p (id, ready_at, late, nth) AS (
        SELECT c.value ->> 0, c.value ->> 1, w.late,
            row_number() OVER (PARTITION BY w.late ORDER BY c.value ->> 1)
        FROM w CROSS JOIN json_each(?2) o CROSS JOIN json_each((
            SELECT json_group_array(json_array(r.id, r.ready_at)) FROM (
                SELECT rowid AS id, ready_at FROM runs
                WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
                  AND requires = o.value AND backlog = w.backlog AND ready_at > w.low AND ready_at <= w.high AND level <= ?3
                ORDER BY ready_at LIMIT ?4
            ) r
        )) c
    )
UPDATE runs
SET state = 'running', node = ?1, token = token + 1, cursor = 0, begun_at = NULL, orders = NULL,
    claimed_at = (SELECT now FROM n), first_claimed_at = coalesce(first_claimed_at, (SELECT now FROM n))
WHERE rowid IN (
    SELECT id FROM p
    WHERE (NOT late OR nth <= ?5) AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)
    ORDER BY late, ready_at LIMIT ?4
)
RETURNING id, tenant, job_id, slot, kind, recurring, due_at, ready_at, token, tries, losses, first_claimed_at, attempts,
    claimed_at AS now;

-- name: claim_cursors
-- The same for the cursors of recurring jobs.
WITH n (now) AS (SELECT {now}),
    w (backlog, low, high, late) AS (
        SELECT 0, max(?6, now - 60000), now, 0 FROM n
        UNION ALL SELECT 0, ?6, now - 60000, 1 FROM n
        UNION ALL SELECT 1, ?6, now, 1 FROM n
    ),
    p (id, ready_at, late, nth) AS (
        SELECT c.value ->> 0, c.value ->> 1, w.late,
            row_number() OVER (PARTITION BY w.late ORDER BY c.value ->> 1)
        FROM w CROSS JOIN json_each(?2) o CROSS JOIN json_each((
            SELECT json_group_array(json_array(r.id, r.ready_at)) FROM (
                SELECT rowid AS id, ready_at FROM runs
                WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
                  AND requires = o.value AND backlog = w.backlog AND ready_at > w.low AND ready_at <= w.high AND level <= ?3
                ORDER BY ready_at LIMIT ?4
            ) r
        )) c
    )
UPDATE runs
SET state = 'running', node = ?1, token = token + 1, cursor = 0, begun_at = NULL, orders = NULL,
    claimed_at = (SELECT now FROM n), first_claimed_at = coalesce(first_claimed_at, (SELECT now FROM n))
WHERE rowid IN (
    SELECT id FROM p
    WHERE (NOT late OR nth <= ?5) AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)
    ORDER BY late, ready_at LIMIT ?4
)
RETURNING id, tenant, job_id, slot, kind, recurring, due_at, ready_at, token, tries, losses, first_claimed_at, attempts,
    claimed_at AS now;

-- name: pick_lanes
-- Due runs of jobs that may not overlap: what becomes of each depends on what runs now. Not yet claimed.
WITH n (now) AS (SELECT {now}),
    w (backlog, low, high, late) AS (
        SELECT 0, max(?6, now - 60000), now, 0 FROM n
        UNION ALL SELECT 0, ?6, now - 60000, 1 FROM n
        UNION ALL SELECT 1, ?6, now, 1 FROM n
    ),
    p (id, ready_at, late, nth) AS (
        SELECT c.value ->> 0, c.value ->> 1, w.late,
            row_number() OVER (PARTITION BY w.late ORDER BY c.value ->> 1)
        FROM w CROSS JOIN json_each(?2) o CROSS JOIN json_each((
            SELECT json_group_array(json_array(r.id, r.ready_at)) FROM (
                SELECT rowid AS id, ready_at FROM runs
                WHERE state = 'pending' AND lane IS NOT NULL
                  AND requires = o.value AND backlog = w.backlog AND ready_at > w.low AND ready_at <= w.high AND level <= ?3
                ORDER BY ready_at LIMIT ?4
            ) r
        )) c
    )
SELECT r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.cursor, r.due_at, r.ready_at, r.token, r.tries, r.losses,
    r.first_claimed_at, r.attempts, r.lane, {now} AS now
FROM p JOIN runs r ON r.rowid = p.id
WHERE (NOT p.late OR p.nth <= ?5) AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)
ORDER BY p.late, p.ready_at LIMIT ?4;

-- name: lane_state
SELECT lane, id, state = 'running' AS running, 1 AS locked
FROM runs
WHERE lane IN (SELECT value FROM json_each(?1))
  AND (state = 'running' OR (parked = 'lane' AND kind = 'scheduled' AND token = 0));

-- name: take_lanes
UPDATE runs
SET state = 'running', node = ?1, token = token + 1, cursor = 0, begun_at = NULL, orders = NULL, parked = NULL,
    claimed_at = {now}, first_claimed_at = coalesce(first_claimed_at, {now})
WHERE id IN (SELECT value FROM json_each(?2))
RETURNING id, token, first_claimed_at;

-- name: wait_in_lane
UPDATE runs SET cursor = 0, parked = 'lane', ready_at = 9223372036854775807 WHERE id IN (SELECT value FROM json_each(?1));

-- name: stop_holders
UPDATE runs
SET orders = (SELECT json_extract(x.value, '$[1]') FROM json_each(?1) x WHERE json_extract(x.value, '$[0]') = runs.id)
WHERE id IN (SELECT json_extract(value, '$[0]') FROM json_each(?1)) AND state = 'running' AND orders IS NOT 'cancel';

-- name: claimed_jobs
-- The spec comes only if the version is not the one we have decoded already.
SELECT j.id, j.tenant, j.version, j.state, j.anchor_at, j.claimed_slot, j.slots_used,
    CASE WHEN j.version = x.value ->> 1 THEN NULL ELSE j.spec END AS spec
FROM json_each(?1) x JOIN jobs j ON j.id = x.value ->> 0;

-- name: claimed_specs
-- The same for runs whose jobs are not followed: what they fire.
SELECT id, version, spec FROM jobs WHERE id IN (SELECT value FROM json_each(?1));

-- name: move_runs
-- Catch-up fires a later slot than the cursor's: the row becomes that slot's run.
UPDATE runs SET id = x.value ->> 1, slot = x.value ->> 2, due_at = x.value ->> 3
FROM json_each(?1) x
WHERE runs.id = x.value ->> 0;

-- name: delete_runs
DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1));

-- name: insert_runs
INSERT INTO runs (id, tenant, job_id, slot, kind, cursor, recurring, due_at, ready_at, parked, resume_at, requires, backlog,
    level, lane, at_most_once, parent, n, created_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16,
    value ->> 17, value ->> 18
FROM json_each(?1) WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: skip_slots
INSERT INTO history (id, tenant, job_id, slot, until_slot, slots, kind, due_at, status, reason, finished_at)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, 'scheduled', value ->> 3, 'skipped',
    value ->> 6, value ->> 7
FROM json_each(?1) WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: advance_jobs
UPDATE jobs SET claimed_slot = x.value ->> 1, slots_used = x.value ->> 2,
    state = CASE WHEN x.value ->> 3 IS NULL THEN state ELSE 'ended' END, ended_at = x.value ->> 3
FROM json_each(?1) x
WHERE jobs.id = x.value ->> 0;

-- name: quarantine_jobs
UPDATE jobs SET state = 'quarantined', reason = x.value ->> 1
FROM json_each(?1) x
WHERE jobs.id = x.value ->> 0;

-- name: park_cursors
UPDATE runs SET state = 'pending', node = NULL, cursor = 1, parked = 'quarantined', ready_at = 9223372036854775807
WHERE id IN (SELECT value FROM json_each(?1));

-- name: oldest_ready
-- What has waited longest of all that a claim left behind, because the backlog has had its share or the room was full:
-- NULL if there is nothing. ?1 offers, ?2 level.
SELECT nullif(min(min(
        coalesce((SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
           AND requires = o.value AND backlog = w.backlog AND ready_at <= n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1), 9223372036854775807),
        coalesce((SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
           AND requires = o.value AND backlog = w.backlog AND ready_at <= n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1), 9223372036854775807),
        coalesce((SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NOT NULL
           AND requires = o.value AND backlog = w.backlog AND ready_at <= n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1), 9223372036854775807)
    )), 9223372036854775807) AS ready_at
FROM (SELECT {now} AS now) n
CROSS JOIN json_each(?1) o
CROSS JOIN (SELECT 0 AS backlog UNION ALL SELECT 1) w;

-- name: peek
-- Before a claim, for each pool: which of the three ranges have something for it, and when to look again if it leaves
-- nothing behind. ?1 offers and whose they are, ?2 level, ?4 no need to look at ready_at below this. A run that may be held ahead is looked for only when it
-- is due within ?3, and left alone if none is due within ?5: those that come ready meanwhile are claimed with it, not one
-- by one; unless 64 of them wait. A lane's are claimed on the dot.
SELECT now, pool, max(free <= now) AS free, max(cursors <= now) AS cursors, max(lanes) AS lanes,
    nullif(min(min(
        CASE WHEN free > now THEN free ELSE 9223372036854775807 END,
        CASE WHEN cursors > now THEN cursors ELSE 9223372036854775807 END,
        next_free, next_cursors, next_lanes
    )), 9223372036854775807) AS next
FROM (
    SELECT n.now AS now, o.pool AS pool,
        (SELECT CASE WHEN count(*) < 64 THEN min(due_at) - ?5 ELSE 0 END FROM (
            SELECT due_at FROM runs
            WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
              AND requires = o.requires AND backlog = w.backlog AND ready_at > ?4 AND ready_at <= n.now AND level <= ?2
            ORDER BY ready_at LIMIT 64)) AS free,
        (SELECT CASE WHEN count(*) < 64 THEN min(due_at) - ?5 ELSE 0 END FROM (
            SELECT due_at FROM runs
            WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
              AND requires = o.requires AND backlog = w.backlog AND ready_at > ?4 AND ready_at <= n.now AND level <= ?2
            ORDER BY ready_at LIMIT 64)) AS cursors,
        (SELECT 1 FROM runs
         WHERE state = 'pending' AND lane IS NOT NULL
           AND requires = o.requires AND backlog = w.backlog AND ready_at > ?4 AND ready_at <= n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1) AS lanes,
        coalesce((SELECT max(ready_at, due_at - ?3) FROM runs
         WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
           AND requires = o.requires AND backlog = w.backlog AND ready_at > n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1), 9223372036854775807) AS next_free,
        coalesce((SELECT max(ready_at, due_at - ?3) FROM runs
         WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
           AND requires = o.requires AND backlog = w.backlog AND ready_at > n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1), 9223372036854775807) AS next_cursors,
        coalesce((SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NOT NULL
           AND requires = o.requires AND backlog = w.backlog AND ready_at > n.now AND level <= ?2
         ORDER BY ready_at LIMIT 1), 9223372036854775807) AS next_lanes
    FROM (SELECT {now} AS now) n
    CROSS JOIN (
        SELECT json_extract(value, '$[0]') AS requires, json_extract(value, '$[1]') AS pool FROM json_each(?1)
    ) o
    CROSS JOIN (SELECT 0 AS backlog UNION ALL SELECT 1) w
)
GROUP BY pool;
