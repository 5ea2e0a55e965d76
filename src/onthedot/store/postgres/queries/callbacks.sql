-- Runs whose receiver tells later how they ended (see `runs/callbacks.py`).

-- name: accept_runs
-- Their call was accepted: no node has them any more, and their time to be completed counts from now; if it is not certain
-- that the call arrived, from when it was sent: a node that was given up may still say that it did. Whoever is to stop has
-- no time left.
UPDATE runs r
SET node = NULL, open = 'callback', claimed_at = NULL, orders = nullif(r.orders, 'recall'), work = x.work,
    begun_at = coalesce(r.begun_at, x.started_at, t.now),
    open_until = CASE WHEN r.orders <> 'recall' THEN t.now WHEN r.open = 'callback' THEN r.open_until
        WHEN x.certain THEN t.now + x.within_ms ELSE coalesce(r.begun_at, t.now) + x.within_ms END
FROM {rows AcceptedRun}, (SELECT {now} AS now) t
WHERE r.id = x.id AND r.token = x.token AND (r.node || '' = x.node OR (r.open = 'callback' AND r.work <> x.work))
RETURNING r.id;

-- name: lock_run_alone
-- A run without its job, like every finish; in whatever state it is.
SELECT r.*, (SELECT version FROM jobs WHERE id = r.job_id) AS version, (SELECT spec FROM jobs WHERE id = r.job_id) AS spec,
    (SELECT anchor_at FROM jobs WHERE id = r.job_id) AS anchor_at
FROM runs r WHERE r.id = $1 FOR UPDATE OF r;

-- name: hold_for_callback
-- Whoever has it, has it no more: it is locked, and ends in this transaction.
UPDATE runs SET node = NULL, open = 'callback' WHERE id = $1;

-- name: find_live
SELECT id FROM runs WHERE id = $1;

-- name: find_ended
-- Who comes with a callback's token names no tenant.
SELECT tenant, tries, attempts FROM history WHERE job_id = $2 AND slot = $3 AND id = $1;

-- name: set_progress
UPDATE runs SET progress = $3 WHERE id = $1 AND tries + 1 = $2;
