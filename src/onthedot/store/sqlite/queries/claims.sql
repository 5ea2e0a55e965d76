-- Claims. Each of the three looks into its own index (runs_free, runs_cursors, runs_lanes), kind by kind of what the node
-- offers and window by window. json_each over a subquery that names the tables before
-- it is what SQLite has for LATERAL: without a limit on each branch a backlog of a million is read whole. `{now}` is a call
-- into Python: asked once and not for each row, and rows by rowid, a claimed run costs 11 µs instead of 15.

-- part: free
c.state = 'pending' AND c.lane IS NULL AND NOT (c.cursor AND c.recurring)

-- part: cursors
c.state = 'pending' AND c.lane IS NULL AND c.cursor AND c.recurring

-- part: lanes
c.state = 'pending' AND c.lane IS NOT NULL

-- part: windows
-- Of each capability what is on time, what is over a minute late, and the backlog. ?1 node, ?2 offers, ?3 level, ?4 limit,
-- ?5 how many of them may be late or backlog, ?6 no need to look at ready_at below this.
n (now) AS (SELECT {now}),
w (backlog, low, high, late) AS (
    SELECT 0, max(?6, now - {BACKLOG_MS}), now, 0 FROM n
    UNION ALL SELECT 0, ?6, now - {BACKLOG_MS}, 1 FROM n
    UNION ALL SELECT 1, ?6, now, 1 FROM n
)

-- part: due_first
-- `c` comes in here as [rowid, ready_at].
c.value ->> 0, c.value ->> 1, w.late, row_number() OVER (PARTITION BY w.late ORDER BY c.value ->> 1)
FROM w CROSS JOIN json_each(?2) o CROSS JOIN json_each((
    SELECT json_group_array(json_array(r.id, r.ready_at)) FROM (
        SELECT c.rowid AS id, c.ready_at FROM runs c
        WHERE c.requires = o.value AND c.backlog = w.backlog AND c.ready_at > w.low AND c.ready_at <= w.high
          AND c.level <= ?3

-- part: due_last
        ORDER BY c.ready_at LIMIT ?4
    ) r
)) c

-- part: picked
-- Not for a node that is lost, nor while all is paused, and of what is late no more than its share.
WHERE (NOT p.late OR p.nth <= ?5) AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL)
ORDER BY p.late, p.ready_at LIMIT ?4

-- part: taken
state = 'running', node = ?1, token = token + 1, cursor = 0, begun_at = NULL, orders = NULL, parked = NULL,
claimed_at = (SELECT now FROM n), first_claimed_at = coalesce(first_claimed_at, (SELECT now FROM n))

-- name: claim_free
-- Runs that need no lock but their own: one-offs, retries, what was asked for by hand.
WITH {part windows}, p (id, ready_at, late, nth) AS (SELECT {part due_first} AND {part free} {part due_last})
UPDATE runs SET {part taken} WHERE rowid IN (SELECT p.id FROM p {part picked})
RETURNING {columns ClaimedRow runs now=claimed_at};

-- name: claim_cursors
-- The same for the cursors of recurring jobs.
WITH {part windows}, p (id, ready_at, late, nth) AS (SELECT {part due_first} AND {part cursors} {part due_last})
UPDATE runs SET {part taken} WHERE rowid IN (SELECT p.id FROM p {part picked})
RETURNING {columns ClaimedRow runs now=claimed_at};

-- name: pick_lanes
-- Due runs of jobs that may not overlap: what becomes of each depends on what runs now. Not yet claimed.
WITH {part windows}, p (id, ready_at, late, nth) AS (SELECT {part due_first} AND {part lanes} {part due_last})
SELECT {columns ClaimedRow r now={now}} FROM p JOIN runs r ON r.rowid = p.id {part picked};

-- part: asked_for
-- While all is paused: what was asked for by hand, by an index of its own.
n (now) AS (SELECT {now}), p (id) AS (
    SELECT c.rowid FROM json_each(?2) o CROSS JOIN runs c
    WHERE c.state = 'pending' AND c.kind = 'manual' AND c.requires = o.value AND c.ready_at <= (SELECT now FROM n)
      AND c.level <= ?3 AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)

-- name: claim_manual
WITH {part asked_for} AND c.lane IS NULL ORDER BY c.ready_at LIMIT ?4)
UPDATE runs SET {part taken} WHERE rowid IN (SELECT p.id FROM p)
RETURNING {columns ClaimedRow runs now=claimed_at};

-- name: pick_manual_lanes
WITH {part asked_for} AND c.lane IS NOT NULL ORDER BY c.ready_at LIMIT ?4)
SELECT {columns ClaimedRow r now={now}} FROM p JOIN runs r ON r.rowid = p.id;

-- name: lane_state
SELECT lane, id, state = 'running' AS running, 1 AS locked
FROM runs
WHERE lane IN (SELECT value FROM json_each(?1)) AND lane > 0
  AND (state = 'running' OR (parked = 'lane' AND kind = 'scheduled' AND token = 0));

-- name: lanes_in_line
-- Who will hold these lanes when their groups have room; the one that is due first comes last.
SELECT lane, id, kind, token FROM runs
WHERE lane IN (SELECT value FROM json_each(?1)) AND lane > 0 AND waiting = 'group' AND state = 'pending'
  AND (parked IS NULL OR parked = 'group')
ORDER BY due_at DESC, id DESC;

-- name: take_lanes
WITH n (now) AS (SELECT {now})
UPDATE runs SET {part taken}, waiting = NULL, waiting_until = NULL WHERE id IN (SELECT value FROM json_each(?2))
RETURNING {columns ClaimedRow runs now=claimed_at};

-- name: wait_in_lane
UPDATE runs SET cursor = 0, parked = 'lane', ready_at = {NEVER} WHERE id IN (SELECT value FROM json_each(?1));

-- name: order_stop
-- By whom they are replaced, or that they are cancelled; a user's cancel stays one. Who waits for a callback has no node
-- that could be asked: its time is up.
UPDATE runs
SET orders = x.orders, open_until = CASE WHEN runs.open = 'callback' THEN {now} ELSE runs.open_until END
FROM {rows StopOrder}
WHERE runs.id = x.id AND runs.state = 'running' AND runs.orders IS NOT 'cancel';

-- name: claimed_jobs
-- The spec comes only if the version is not the one we have decoded already.
SELECT {columns ClaimedJob j spec=CASE WHEN j.version = x.known THEN NULL ELSE j.spec END}
FROM {rows KnownJob} JOIN jobs j ON j.id = x.id;

-- name: claimed_specs
-- The same for runs whose jobs are not followed: what they fire.
SELECT id, version, spec FROM jobs WHERE id IN (SELECT value FROM json_each(?1));

-- name: move_runs
-- Catch-up fires a later slot than the cursor's: the row becomes that slot's run.
UPDATE runs SET id = x.new_id, slot = x.slot, due_at = x.due_at FROM {rows MovedRun} WHERE runs.id = x.id;

-- name: delete_runs
DELETE FROM runs WHERE id IN (SELECT value FROM json_each(?1));

-- name: insert_runs
INSERT INTO runs ({columns NewRun})
SELECT {columns NewRun x} FROM {rows NewRun} WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: copy_runs
-- The first runs of new jobs, which no index can refuse. Bound row by row, which beats taking JSON apart.
INSERT INTO runs ({columns NewRun}) VALUES ({values NewRun});

-- name: skip_slots
INSERT INTO history ({columns SkippedSlots}, kind, due_at, status)
SELECT {columns SkippedSlots x}, 'scheduled', x.slot, 'skipped' FROM {rows SkippedSlots} WHERE true
ON CONFLICT DO NOTHING
RETURNING id;

-- name: advance_jobs
UPDATE jobs SET claimed_slot = x.claimed_slot, slots_used = x.slots_used,
    state = CASE WHEN x.ended_at IS NULL THEN state ELSE 'ended' END, ended_at = x.ended_at
FROM {rows AdvancedJob} WHERE jobs.id = x.id;

-- name: quarantine_jobs
UPDATE jobs SET state = 'quarantined', reason = x.reason FROM {rows QuarantinedJob} WHERE jobs.id = x.id;

-- name: park_cursors
UPDATE runs SET state = 'pending', node = NULL, cursor = 1, parked = 'quarantined', ready_at = {NEVER}
WHERE id IN (SELECT value FROM json_each(?1));

-- part: ready
-- Of the capability `o` and the backlog `w`, by `n.now`.
c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at <= n.now

-- name: oldest_ready
-- What has waited longest of all that a claim left behind, because the backlog has had its share or the room was full:
-- NULL if there is nothing. ?1 offers, ?2 level.
SELECT nullif(min(min(
        coalesce((SELECT c.ready_at FROM runs c WHERE {part free} AND {part ready} AND c.level <= ?2
                  ORDER BY c.ready_at LIMIT 1), {NEVER}),
        coalesce((SELECT c.ready_at FROM runs c WHERE {part cursors} AND {part ready} AND c.level <= ?2
                  ORDER BY c.ready_at LIMIT 1), {NEVER}),
        coalesce((SELECT c.ready_at FROM runs c WHERE {part lanes} AND {part ready} AND c.level <= ?2
                  ORDER BY c.ready_at LIMIT 1), {NEVER})
    )), {NEVER}) AS ready_at
FROM (SELECT {now} AS now) n
CROSS JOIN (SELECT value AS requires FROM json_each(?1)) o
CROSS JOIN (SELECT 0 AS backlog UNION ALL SELECT 1) w;

-- part: seen
{part ready} AND c.ready_at > ?3 AND c.level <= ?1 ORDER BY c.ready_at

-- part: coming
c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at > n.now AND c.level <= ?1 ORDER BY c.ready_at LIMIT 1

-- part: when_first_is_due
SELECT CASE WHEN count(*) < {FULL} THEN min(due_at) - ?4 ELSE 0 END FROM

-- name: peek
-- Before a claim, for each pool: which of the three ranges have something for it, and when to look again if it leaves
-- nothing behind. ?1 level, ?3 no need to look at ready_at below this. A run that may be held ahead is looked for only
-- when it is due within ?2, and left alone if none is due within ?4: those that come ready meanwhile are claimed with it,
-- not one by one; unless so many of them wait that they are enough. A lane's are claimed on the dot.
SELECT now, pool, max(free <= now) AS free, max(cursors <= now) AS cursors, max(lanes) AS lanes,
    nullif(min(min(
        CASE WHEN free > now THEN free ELSE {NEVER} END, CASE WHEN cursors > now THEN cursors ELSE {NEVER} END,
        next_free, next_cursors, next_lanes
    )), {NEVER}) AS next, EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL) AS frozen,
    (SELECT max(ended_at) FROM freezes) AS thawed_at
FROM (
    SELECT n.now AS now, o.pool AS pool,
        ({part when_first_is_due}
            (SELECT c.due_at FROM runs c WHERE {part free} AND {part seen} LIMIT {FULL})) AS free,
        ({part when_first_is_due}
            (SELECT c.due_at FROM runs c WHERE {part cursors} AND {part seen} LIMIT {FULL})) AS cursors,
        (SELECT 1 FROM runs c WHERE {part lanes} AND {part seen} LIMIT 1) AS lanes,
        coalesce((SELECT max(c.ready_at, c.due_at - ?2) FROM runs c
                  WHERE {part free} AND {part coming}), {NEVER}) AS next_free,
        coalesce((SELECT max(c.ready_at, c.due_at - ?2) FROM runs c
                  WHERE {part cursors} AND {part coming}), {NEVER}) AS next_cursors,
        coalesce((SELECT c.ready_at FROM runs c WHERE {part lanes} AND {part coming}), {NEVER}) AS next_lanes
    FROM (SELECT {now} AS now) n
    CROSS JOIN (SELECT {columns Offered x} FROM {rows Offered}) AS o
    CROSS JOIN (SELECT 0 AS backlog UNION ALL SELECT 1) w
)
GROUP BY pool;
