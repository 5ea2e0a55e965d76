-- Runs that wait for a destination, or for their share of the workers (see `runs/destinations.py`).

-- name: wait_for_destination
-- They are pending again, under their jobs' locks. Not if their job was changed since the claim: its runs may go elsewhere.
UPDATE runs r
SET requires = x.requires, waiting = x.waiting, waiting_since = coalesce(r.waiting_since, {now}),
    waiting_until = x.until
FROM {rows WaitingRun}, jobs j
WHERE r.id = x.id AND j.id = r.job_id AND j.version = x.version AND r.state = 'pending' AND r.parked IS NULL
RETURNING r.id;

-- part: hops
-- Which values `requires` has between $1 and $2, by hopping from one to the next: $3 at most.
(SELECT c.requires, 1 AS n FROM runs c WHERE {where} AND c.requires > $1 AND c.requires < $2 ORDER BY c.requires LIMIT 1)
UNION ALL
SELECT (SELECT c.requires FROM runs c WHERE {where} AND c.requires > h.requires AND c.requires < $2
        ORDER BY c.requires LIMIT 1), h.n + 1
FROM hops h WHERE h.requires IS NOT NULL AND h.n < $3

-- name: waited_for
WITH RECURSIVE hops AS ({part hops})
SELECT requires FROM hops WHERE requires IS NOT NULL ORDER BY requires;

-- name: any_expired_waiting
SELECT 1 AS there FROM runs
WHERE waiting_until <= {now} AND waiting_until IS NOT NULL AND state = 'pending' AND parked IS NULL LIMIT 1;

-- name: release_expired_waiting
-- They require what their job does, and are claimed with all others: who claims one sees that it has expired.
UPDATE runs r SET requires = j.requires, waiting = NULL, waiting_until = NULL
FROM jobs j
WHERE j.id = r.job_id AND r.id = ANY (ARRAY(
    SELECT id FROM runs
    WHERE waiting_until <= {now} AND waiting_until IS NOT NULL AND state = 'pending' AND parked IS NULL
    ORDER BY waiting_until LIMIT $1 FOR UPDATE SKIP LOCKED
));

-- name: count_waiting
-- How many wait for each of these, and since when the first of them; of each kind of claim a thousand are counted.
SELECT w.requires, count(*) AS waiting, min(c.waiting_since) AS since
FROM unnest($1::text[]) AS w (requires)
CROSS JOIN LATERAL (
    (SELECT c.waiting_since FROM runs c WHERE {part free} AND c.requires = w.requires LIMIT {COUNTED})
    UNION ALL
    (SELECT c.waiting_since FROM runs c WHERE {part lanes} AND c.requires = w.requires LIMIT {COUNTED})
) c
GROUP BY w.requires;

-- name: destinations_of_nodes
SELECT id, destinations FROM nodes WHERE lost_at IS NULL AND destinations IS NOT NULL ORDER BY id;
