-- Claims. Each of the three looks into its own index (runs_free, runs_cursors, runs_lanes), kind by kind of what the node
-- offers and window by window. The ids come as an array: as a join the planner
-- flips to reading the whole table at a limit of 500. Nothing here ever waits: SKIP LOCKED throughout.

-- part: free
c.state = 'pending' AND c.lane IS NULL AND NOT (c.cursor AND c.recurring)

-- part: cursors
c.state = 'pending' AND c.lane IS NULL AND c.cursor AND c.recurring

-- part: lanes
c.state = 'pending' AND c.lane IS NOT NULL

-- part: due
c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at > w.low AND c.ready_at <= w.high AND c.level <= $3
ORDER BY c.ready_at LIMIT w.most

-- part: windows
-- Of each capability what is on time, what is over a minute late, and the backlog. $1 node, $2 offers, $3 level, $4 limit,
-- $5 how many of them may be late or backlog, $6 no need to look at ready_at below this.
(SELECT {now} AS now) n
CROSS JOIN LATERAL (VALUES
    (false, greatest($6::bigint, n.now - {BACKLOG_MS}), n.now, $4::bigint, false),
    (false, $6::bigint, n.now - {BACKLOG_MS}, $5::bigint, true),
    (true, $6::bigint, n.now, $5::bigint, true)
) AS w (backlog, low, high, most, late)
CROSS JOIN unnest($2::text[]) AS o (requires)

-- part: picked
-- Not for a node that is lost, nor while all is paused, and of what is late no more than its share.
WHERE (NOT p.late OR p.nth <= $5)
  AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL)
ORDER BY p.late, p.ready_at LIMIT $4

-- part: nth
row_number() OVER (PARTITION BY w.late ORDER BY c.ready_at) AS nth

-- part: taken
state = 'running', node = $1, token = r.token + 1, cursor = false, begun_at = NULL, orders = NULL, parked = NULL,
claimed_at = t.now, first_claimed_at = coalesce(r.first_claimed_at, t.now)

-- name: claim_free
-- Runs that need no lock but their own: one-offs, retries, what was asked for by hand.
UPDATE runs r SET {part taken}
FROM (SELECT {now} AS now) t
WHERE r.id = ANY (ARRAY(
    SELECT p.id
    FROM (
        SELECT c.id, c.ready_at, w.late, {part nth}
        FROM {part windows}
        CROSS JOIN LATERAL (
            SELECT c.id, c.ready_at FROM runs c
            WHERE {part free} AND {part due}
            FOR UPDATE SKIP LOCKED
        ) c
    ) p
    {part picked}
))
RETURNING {columns ClaimedRow r now=t.now};

-- name: claim_cursors
-- The same for the cursors of recurring jobs. The job is locked with them: an edit that waits for a claimed run could not
-- see its successor, and would make a second cursor.
UPDATE runs r SET {part taken}
FROM (SELECT {now} AS now) t
WHERE r.id = ANY (ARRAY(
    SELECT p.id
    FROM (
        SELECT c.id, c.ready_at, w.late, {part nth}
        FROM {part windows}
        CROSS JOIN LATERAL (
            SELECT c.id, c.ready_at FROM runs c JOIN jobs j ON j.id = c.job_id
            WHERE {part cursors} AND {part due}
            FOR UPDATE OF c SKIP LOCKED FOR NO KEY UPDATE OF j SKIP LOCKED
        ) c
    ) p
    {part picked}
))
RETURNING {columns ClaimedRow r now=t.now};

-- name: pick_lanes
-- Due runs of jobs that may not overlap, with their jobs locked: what becomes of each depends on what runs now, and that
-- can only be seen under the lock, in a later statement. Not yet claimed.
SELECT {columns ClaimedRow p}
FROM (
    SELECT c.*, w.late, n.now, {part nth}
    FROM {part windows}
    CROSS JOIN LATERAL (
        SELECT c.* FROM runs c JOIN jobs j ON j.id = c.job_id
        WHERE {part lanes} AND {part due}
        FOR UPDATE OF c SKIP LOCKED FOR NO KEY UPDATE OF j SKIP LOCKED
    ) c
) p
{part picked};

-- part: asked_for
-- While all is paused: what was asked for by hand, by an index of its own.
FROM (SELECT {now} AS now) n
CROSS JOIN unnest($2::text[]) AS o (requires)
CROSS JOIN LATERAL (
    SELECT c.* FROM runs c JOIN jobs j ON j.id = c.job_id
    WHERE c.state = 'pending' AND c.kind = 'manual' AND c.requires = o.requires AND c.ready_at <= n.now AND c.level <= $3

-- name: claim_manual
UPDATE runs r SET {part taken}
FROM (SELECT {now} AS now) t
WHERE r.id = ANY (ARRAY(
    SELECT c.id
    {part asked_for} AND c.lane IS NULL
        ORDER BY c.ready_at LIMIT $4 FOR UPDATE OF c SKIP LOCKED
    ) c
    WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL) LIMIT $4
))
RETURNING {columns ClaimedRow r now=t.now};

-- name: pick_manual_lanes
SELECT {columns ClaimedRow p}
FROM (
    SELECT c.*, n.now
    {part asked_for} AND c.lane IS NOT NULL
        ORDER BY c.ready_at LIMIT $4 FOR UPDATE OF c SKIP LOCKED FOR NO KEY UPDATE OF j SKIP LOCKED
    ) c
) p
WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE id = $1 AND lost_at IS NOT NULL) LIMIT $4;

-- name: lane_state
-- What runs in these lanes, and which scheduled run waits there. `locked`: its finish has to wait for us, and will see who
-- waits. A holder we can't lock is just being finished: leave its lane alone for now.
WITH locked AS (
    SELECT id FROM runs WHERE lane = ANY ($1::bigint[]) AND lane > 0 AND state = 'running' FOR UPDATE SKIP LOCKED
)
SELECT r.lane, r.id, r.state = 'running' AS running, l.id IS NOT NULL AS locked
FROM runs r LEFT JOIN locked l ON l.id = r.id
WHERE r.lane = ANY ($1::bigint[]) AND r.lane > 0
  AND (r.state = 'running' OR (r.parked = 'lane' AND r.kind = 'scheduled' AND r.token = 0));

-- name: lanes_in_line
-- Who will hold these lanes when their groups have room; the one that is due first comes last.
SELECT lane, id, kind, token FROM runs
WHERE lane = ANY ($1::bigint[]) AND lane > 0 AND waiting = 'group' AND state = 'pending'
  AND (parked IS NULL OR parked = 'group')
ORDER BY due_at DESC, id DESC;

-- name: take_lanes
UPDATE runs r SET {part taken}, waiting = NULL, waiting_until = NULL
FROM (SELECT {now} AS now) t
WHERE r.id = ANY ($2::text[])
RETURNING {columns ClaimedRow r now=t.now};

-- name: wait_in_lane
UPDATE runs SET cursor = false, parked = 'lane', ready_at = {NEVER} WHERE id = ANY ($1::text[]);

-- name: order_stop
-- By whom they are replaced, or that they are cancelled; a user's cancel stays one. Who waits for a callback has no node
-- that could be asked: its time is up.
UPDATE runs r
SET orders = x.orders, open_until = CASE WHEN r.open = 'callback' THEN {now} ELSE r.open_until END
FROM {rows StopOrder}
WHERE r.id = x.id AND r.state = 'running' AND r.orders IS DISTINCT FROM 'cancel';

-- name: claimed_jobs
-- Read after the locks, not with them: a join in the claim would show jobs as they were before an edit that has since been
-- acknowledged. The spec comes only if the version is not the one we have decoded already.
SELECT {columns ClaimedJob j spec=CASE WHEN j.version = x.known THEN NULL ELSE j.spec END}
FROM {rows KnownJob} JOIN jobs j ON j.id = x.id;

-- name: claimed_specs
-- The same for runs whose jobs are not followed: what they fire.
SELECT id, version, spec FROM jobs WHERE id = ANY ($1::bigint[]);

-- name: move_runs
-- Catch-up fires a later slot than the cursor's: the row becomes that slot's run.
UPDATE runs r SET id = x.new_id, slot = x.slot, due_at = x.due_at FROM {rows MovedRun} WHERE r.id = x.id;

-- name: delete_runs
DELETE FROM runs WHERE id = ANY ($1::text[]);

-- name: insert_runs
INSERT INTO runs ({columns NewRun})
SELECT {columns NewRun x} FROM {rows NewRun}
ON CONFLICT DO NOTHING
RETURNING id;

-- name: copy_runs
-- The first runs of new jobs, which no index can refuse: COPY takes 3 µs a row where arrays take 15.
COPY runs ({columns NewRun}) FROM STDIN;

-- name: skip_slots
INSERT INTO history ({columns SkippedSlots}, kind, due_at, status)
SELECT {columns SkippedSlots x}, 'scheduled', x.slot, 'skipped' FROM {rows SkippedSlots}
ON CONFLICT DO NOTHING
RETURNING id;

-- name: advance_jobs
UPDATE jobs j SET claimed_slot = x.claimed_slot, slots_used = x.slots_used,
    state = CASE WHEN x.ended_at IS NULL THEN j.state ELSE 'ended' END, ended_at = x.ended_at
FROM {rows AdvancedJob} WHERE j.id = x.id;

-- name: quarantine_jobs
UPDATE jobs j SET state = 'quarantined', reason = x.reason FROM {rows QuarantinedJob} WHERE j.id = x.id;

-- name: park_cursors
UPDATE runs SET state = 'pending', node = NULL, cursor = true, parked = 'quarantined', ready_at = {NEVER}
WHERE id = ANY ($1::text[]);

-- part: ready
-- Of the capability `o` and the backlog `w`, by `n.now`.
c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at <= n.now

-- name: oldest_ready
-- What has waited longest of all that a claim left behind, because the backlog has had its share or the room was full:
-- NULL if there is nothing. $1 offers, $2 level.
SELECT min(least(
        (SELECT c.ready_at FROM runs c WHERE {part free} AND {part ready} AND c.level <= $2 ORDER BY c.ready_at LIMIT 1),
        (SELECT c.ready_at FROM runs c WHERE {part cursors} AND {part ready} AND c.level <= $2 ORDER BY c.ready_at LIMIT 1),
        (SELECT c.ready_at FROM runs c WHERE {part lanes} AND {part ready} AND c.level <= $2 ORDER BY c.ready_at LIMIT 1)
    )) AS ready_at
FROM (SELECT {now} AS now) n
CROSS JOIN unnest($1::text[]) AS o (requires)
CROSS JOIN (VALUES (false), (true)) AS w (backlog);

-- part: seen
{part ready} AND c.ready_at > $3 AND c.level <= $1 ORDER BY c.ready_at

-- part: coming
c.requires = o.requires AND c.backlog = w.backlog AND c.ready_at > n.now AND c.level <= $1 ORDER BY c.ready_at LIMIT 1

-- part: when_first_is_due
SELECT CASE WHEN count(*) < {FULL} THEN min(due_at) - $4::bigint ELSE 0 END FROM

-- name: peek
-- Before a claim, for each pool: which of the three ranges have something for it, and when to look again if it leaves
-- nothing behind. $1 level, $3 no need to look at ready_at below this. A run that may be held ahead is looked for only
-- when it is due within $2, and left alone if none is due within $4: those that come ready meanwhile are claimed with it,
-- not one by one; unless so many of them wait that they are enough. A lane's are claimed on the dot.
SELECT n.now, p.pool, p.free, p.cursors, p.lanes, p.next, EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL) AS frozen,
    (SELECT max(ended_at) FROM freezes) AS thawed_at
FROM (SELECT {now} AS now) n
CROSS JOIN LATERAL (
    SELECT o.pool, bool_or(c.free <= n.now) AS free, bool_or(c.cursors <= n.now) AS cursors, bool_or(c.lanes) AS lanes,
        min(least(
            CASE WHEN c.free > n.now THEN c.free END, CASE WHEN c.cursors > n.now THEN c.cursors END,
            c.next_free, c.next_cursors, c.next_lanes
        )) AS next
    FROM (SELECT {columns Offered x} FROM {rows Offered}) AS o
    CROSS JOIN (VALUES (false), (true)) AS w (backlog)
    CROSS JOIN LATERAL (
        SELECT
            ({part when_first_is_due}
                (SELECT c.due_at FROM runs c WHERE {part free} AND {part seen} LIMIT {FULL}) f) AS free,
            ({part when_first_is_due}
                (SELECT c.due_at FROM runs c WHERE {part cursors} AND {part seen} LIMIT {FULL}) f) AS cursors,
            (SELECT true FROM runs c WHERE {part lanes} AND {part seen} LIMIT 1) AS lanes,
            (SELECT greatest(c.ready_at, c.due_at - $2::bigint) FROM runs c
             WHERE {part free} AND {part coming}) AS next_free,
            (SELECT greatest(c.ready_at, c.due_at - $2::bigint) FROM runs c
             WHERE {part cursors} AND {part coming}) AS next_cursors,
            (SELECT c.ready_at FROM runs c WHERE {part lanes} AND {part coming}) AS next_lanes
        OFFSET 0 -- else each mention above is a look of its own
    ) c
    GROUP BY o.pool
) p;
