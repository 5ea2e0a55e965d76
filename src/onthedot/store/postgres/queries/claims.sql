-- Claims. Each of the three looks into its own index (runs_free, runs_cursors, runs_lanes), kind by kind of what the node
-- offers and window by window: on time, over a minute late, backlog. The ids come as an array: as a join the planner
-- flips to reading the whole table at a limit of 500. Nothing here ever waits: SKIP LOCKED throughout.

-- name: claim_free
-- Runs that need no lock but their own: one-offs, retries, what was asked for by hand. $1 node, $2 offers, $3 level,
-- $4 limit, $5 how many of them may be late or backlog, $6 no need to look at ready_at below this.
UPDATE runs r
SET state = 'running', node = $1, token = r.token + 1, cursor = false, begun_at = NULL, orders = NULL,
    claimed_at = t.now, first_claimed_at = coalesce(r.first_claimed_at, t.now)
FROM (SELECT {now} AS now) t
WHERE r.id = ANY (ARRAY(
    SELECT p.id
    FROM (
        SELECT c.id, c.ready_at, w.late, row_number() OVER (PARTITION BY w.late ORDER BY c.ready_at) AS nth
        FROM (SELECT {now} AS now) n
        CROSS JOIN LATERAL (VALUES
            (false, greatest($6::bigint, n.now - 60000), n.now, $4::bigint, false),
            (false, $6::bigint, n.now - 60000, $5::bigint, true),
            (true, $6::bigint, n.now, $5::bigint, true)
        ) AS w (backlog, low, high, most, late)
        CROSS JOIN unnest($2::text[]) AS o (requires)
        CROSS JOIN LATERAL (
            SELECT id, ready_at FROM runs
            WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
              AND requires = o.requires AND backlog = w.backlog AND ready_at > w.low AND ready_at <= w.high
              AND level <= $3
            ORDER BY ready_at LIMIT w.most
            FOR UPDATE SKIP LOCKED
        ) c
    ) p
    WHERE (NOT p.late OR p.nth <= $5)
      AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL)
    ORDER BY p.late, p.ready_at LIMIT $4
))
RETURNING r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.ready_at, r.token, r.tries, r.losses,
    r.first_claimed_at, r.attempts, t.now;

-- name: claim_cursors
-- The same for the cursors of recurring jobs. The job is locked with them: an edit that waits for a claimed run could not
-- see its successor, and would make a second cursor.
UPDATE runs r
SET state = 'running', node = $1, token = r.token + 1, cursor = false, begun_at = NULL, orders = NULL,
    claimed_at = t.now, first_claimed_at = coalesce(r.first_claimed_at, t.now)
FROM (SELECT {now} AS now) t
WHERE r.id = ANY (ARRAY(
    SELECT p.id
    FROM (
        SELECT c.id, c.ready_at, w.late, row_number() OVER (PARTITION BY w.late ORDER BY c.ready_at) AS nth
        FROM (SELECT {now} AS now) n
        CROSS JOIN LATERAL (VALUES
            (false, greatest($6::bigint, n.now - 60000), n.now, $4::bigint, false),
            (false, $6::bigint, n.now - 60000, $5::bigint, true),
            (true, $6::bigint, n.now, $5::bigint, true)
        ) AS w (backlog, low, high, most, late)
        CROSS JOIN unnest($2::text[]) AS o (requires)
        CROSS JOIN LATERAL (
            SELECT c.id, c.ready_at FROM runs c JOIN jobs j ON j.id = c.job_id
            WHERE c.state = 'pending' AND c.lane IS NULL AND c.cursor AND c.recurring
              AND c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at > w.low AND c.ready_at <= w.high
              AND c.level <= $3
            ORDER BY c.ready_at LIMIT w.most
            FOR UPDATE OF c SKIP LOCKED FOR NO KEY UPDATE OF j SKIP LOCKED
        ) c
    ) p
    WHERE (NOT p.late OR p.nth <= $5)
      AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL)
    ORDER BY p.late, p.ready_at LIMIT $4
))
RETURNING r.id, r.tenant, r.job_id, r.slot, r.kind, r.recurring, r.due_at, r.ready_at, r.token, r.tries, r.losses,
    r.first_claimed_at, r.attempts, t.now;

-- name: pick_lanes
-- Due runs of jobs that may not overlap, with their jobs locked: what becomes of each depends on what runs now, and that
-- can only be seen under the lock, in a later statement. Not yet claimed.
SELECT p.id, p.tenant, p.job_id, p.slot, p.kind, p.recurring, p.cursor, p.due_at, p.ready_at, p.token, p.tries, p.losses,
    p.first_claimed_at, p.attempts, p.lane, p.now
FROM (
    SELECT c.*, w.late, n.now, row_number() OVER (PARTITION BY w.late ORDER BY c.ready_at) AS nth
    FROM (SELECT {now} AS now) n
    CROSS JOIN LATERAL (VALUES
        (false, greatest($6::bigint, n.now - 60000), n.now, $4::bigint, false),
        (false, $6::bigint, n.now - 60000, $5::bigint, true),
        (true, $6::bigint, n.now, $5::bigint, true)
    ) AS w (backlog, low, high, most, late)
    CROSS JOIN unnest($2::text[]) AS o (requires)
    CROSS JOIN LATERAL (
        SELECT c.id, c.tenant, c.job_id, c.slot, c.kind, c.recurring, c.cursor, c.due_at, c.ready_at, c.token, c.tries,
            c.losses, c.first_claimed_at, c.attempts, c.lane
        FROM runs c JOIN jobs j ON j.id = c.job_id
        WHERE c.state = 'pending' AND c.lane IS NOT NULL
          AND c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at > w.low AND c.ready_at <= w.high
          AND c.level <= $3
        ORDER BY c.ready_at LIMIT w.most
        FOR UPDATE OF c SKIP LOCKED FOR NO KEY UPDATE OF j SKIP LOCKED
    ) c
) p
WHERE (NOT p.late OR p.nth <= $5)
  AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL)
ORDER BY p.late, p.ready_at LIMIT $4;

-- name: lane_state
-- What runs in these lanes, and which scheduled run waits there. `locked`: its finish has to wait for us, and will see who
-- waits. A holder we can't lock is just being finished: leave its lane alone for now.
WITH locked AS (
    SELECT id FROM runs WHERE lane = ANY ($1::bigint[]) AND state = 'running' FOR UPDATE SKIP LOCKED
)
SELECT r.lane, r.id, r.state = 'running' AS running, l.id IS NOT NULL AS locked
FROM runs r LEFT JOIN locked l ON l.id = r.id
WHERE r.lane = ANY ($1::bigint[])
  AND (r.state = 'running' OR (r.parked = 'lane' AND r.kind = 'scheduled' AND r.token = 0));

-- name: take_lanes
UPDATE runs r
SET state = 'running', node = $1, token = r.token + 1, cursor = false, begun_at = NULL, orders = NULL, parked = NULL,
    claimed_at = {now}, first_claimed_at = coalesce(r.first_claimed_at, {now})
WHERE r.id = ANY ($2::text[])
RETURNING r.id, r.token, r.first_claimed_at;

-- name: wait_in_lane
UPDATE runs SET cursor = false, parked = 'lane', ready_at = 9223372036854775807 WHERE id = ANY ($1::text[]);

-- name: stop_holders
-- By whom they are replaced; a user's cancel stays one.
UPDATE runs r SET orders = x.orders FROM unnest($1::text[], $2::text[]) AS x (id, orders)
WHERE r.id = x.id AND r.state = 'running' AND r.orders IS DISTINCT FROM 'cancel';

-- name: claimed_jobs
-- Read after the locks, not with them: a join in the claim would show jobs as they were before an edit that has since been
-- acknowledged. The spec comes only if the version is not the one we have decoded already.
SELECT j.id, j.tenant, j.version, j.state, j.anchor_at, j.claimed_slot, j.slots_used,
    CASE WHEN j.version = x.known THEN NULL ELSE j.spec END AS spec
FROM unnest($1::bigint[], $2::bigint[]) AS x (id, known) JOIN jobs j ON j.id = x.id;

-- name: claimed_specs
-- The same for runs whose jobs are not followed: what they fire.
SELECT id, version, spec FROM jobs WHERE id = ANY ($1::bigint[]);

-- name: move_runs
-- Catch-up fires a later slot than the cursor's: the row becomes that slot's run.
UPDATE runs r SET id = x.new_id, slot = x.slot, due_at = x.due_at
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS x (id, new_id, slot, due_at)
WHERE r.id = x.id;

-- name: delete_runs
DELETE FROM runs WHERE id = ANY ($1::text[]);

-- name: insert_runs
INSERT INTO runs (id, tenant, job_id, slot, kind, cursor, recurring, due_at, ready_at, parked, resume_at, requires, backlog,
    level, lane, at_most_once, parent, n, created_at)
SELECT x.id, x.tenant, x.job_id, x.slot, x.kind, x.cursor, x.recurring, x.due_at, x.ready_at, x.parked, x.resume_at,
    x.requires, x.backlog, x.level, x.lane, x.at_most_once, x.parent, x.n, x.created_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[], $7::boolean[], $8::bigint[],
    $9::bigint[], $10::text[], $11::bigint[], $12::text[], $13::boolean[], $14::bigint[], $15::bigint[], $16::boolean[],
    $17::text[], $18::bigint[], $19::bigint[])
  AS x (id, tenant, job_id, slot, kind, cursor, recurring, due_at, ready_at, parked, resume_at, requires, backlog, level,
    lane, at_most_once, parent, n, created_at)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: skip_slots
INSERT INTO history (id, tenant, job_id, slot, until_slot, slots, kind, due_at, status, reason, finished_at)
SELECT x.id, x.tenant, x.job_id, x.slot, x.until_slot, x.slots, 'scheduled', x.slot, 'skipped', x.reason, x.finished_at
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::bigint[])
  AS x (id, tenant, job_id, slot, until_slot, slots, reason, finished_at)
ON CONFLICT DO NOTHING
RETURNING id;

-- name: advance_jobs
UPDATE jobs j SET claimed_slot = x.claimed_slot, slots_used = x.slots_used,
    state = CASE WHEN x.ended_at IS NULL THEN j.state ELSE 'ended' END, ended_at = x.ended_at
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS x (id, claimed_slot, slots_used, ended_at)
WHERE j.id = x.id;

-- name: quarantine_jobs
UPDATE jobs j SET state = 'quarantined', reason = x.reason
FROM unnest($1::bigint[], $2::text[]) AS x (id, reason)
WHERE j.id = x.id;

-- name: park_cursors
UPDATE runs SET state = 'pending', node = NULL, cursor = true, parked = 'quarantined', ready_at = 9223372036854775807
WHERE id = ANY ($1::text[]);

-- name: oldest_ready
-- What has waited longest of all that a claim left behind, because the backlog has had its share or the room was full:
-- NULL if there is nothing. $1 offers, $2 level.
SELECT min(least(
        (SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
           AND requires = o.requires AND backlog = w.backlog AND ready_at <= n.now AND level <= $2
         ORDER BY ready_at LIMIT 1),
        (SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
           AND requires = o.requires AND backlog = w.backlog AND ready_at <= n.now AND level <= $2
         ORDER BY ready_at LIMIT 1),
        (SELECT ready_at FROM runs
         WHERE state = 'pending' AND lane IS NOT NULL
           AND requires = o.requires AND backlog = w.backlog AND ready_at <= n.now AND level <= $2
         ORDER BY ready_at LIMIT 1)
    )) AS ready_at
FROM (SELECT {now} AS now) n
CROSS JOIN unnest($1::text[]) AS o (requires)
CROSS JOIN (VALUES (false), (true)) AS w (backlog);

-- name: peek
-- Before a claim, for each pool: which of the three ranges have something for it, and when to look again if it leaves
-- nothing behind. $1 offers and $2 whose they are, $3 level, $5 no need to look at ready_at below this. A run that may be
-- held ahead is looked for only when it is due within $4, and left alone if none is due within $6: those that come ready
-- meanwhile are claimed with it, not one by one; unless 64 of them wait. A lane's are claimed on the dot.
SELECT n.now, p.pool, p.free, p.cursors, p.lanes, p.next
FROM (SELECT {now} AS now) n
CROSS JOIN LATERAL (
    SELECT o.pool, bool_or(c.free <= n.now) AS free, bool_or(c.cursors <= n.now) AS cursors, bool_or(c.lanes) AS lanes,
        min(least(
            CASE WHEN c.free > n.now THEN c.free END, CASE WHEN c.cursors > n.now THEN c.cursors END,
            c.next_free, c.next_cursors, c.next_lanes
        )) AS next
    FROM unnest($1::text[], $2::bigint[]) AS o (requires, pool)
    CROSS JOIN (VALUES (false), (true)) AS w (backlog)
    CROSS JOIN LATERAL (
        SELECT
            (SELECT CASE WHEN count(*) < 64 THEN min(due_at) - $6::bigint ELSE 0 END FROM (
                SELECT due_at FROM runs
                WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
                  AND requires = o.requires AND backlog = w.backlog AND ready_at > $5 AND ready_at <= n.now AND level <= $3
                ORDER BY ready_at LIMIT 64) f) AS free,
            (SELECT CASE WHEN count(*) < 64 THEN min(due_at) - $6::bigint ELSE 0 END FROM (
                SELECT due_at FROM runs
                WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
                  AND requires = o.requires AND backlog = w.backlog AND ready_at > $5 AND ready_at <= n.now AND level <= $3
                ORDER BY ready_at LIMIT 64) f) AS cursors,
            (SELECT true FROM runs
             WHERE state = 'pending' AND lane IS NOT NULL
               AND requires = o.requires AND backlog = w.backlog AND ready_at > $5 AND ready_at <= n.now AND level <= $3
             ORDER BY ready_at LIMIT 1) AS lanes,
            (SELECT greatest(ready_at, due_at - $4::bigint) FROM runs
             WHERE state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
               AND requires = o.requires AND backlog = w.backlog AND ready_at > n.now AND level <= $3
             ORDER BY ready_at LIMIT 1) AS next_free,
            (SELECT greatest(ready_at, due_at - $4::bigint) FROM runs
             WHERE state = 'pending' AND lane IS NULL AND cursor AND recurring
               AND requires = o.requires AND backlog = w.backlog AND ready_at > n.now AND level <= $3
             ORDER BY ready_at LIMIT 1) AS next_cursors,
            (SELECT ready_at FROM runs
             WHERE state = 'pending' AND lane IS NOT NULL
               AND requires = o.requires AND backlog = w.backlog AND ready_at > n.now AND level <= $3
             ORDER BY ready_at LIMIT 1) AS next_lanes
        OFFSET 0 -- else each mention above is a look of its own
    ) c
    GROUP BY o.pool
) p;
