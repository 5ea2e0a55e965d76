-- Runs whose receiver tells later how they ended (see `runs/callbacks.py`).

-- name: accept_runs
-- Their call was accepted: no node has them any more, and their time to be completed counts from now; if it is not certain
-- that the call arrived, from when it was sent: a node that was given up may still say that it did. Whoever is to stop has
-- no time left.
UPDATE runs
SET node = NULL, open = 'callback', claimed_at = NULL, orders = nullif(runs.orders, 'recall'), work = x.work,
    begun_at = coalesce(runs.begun_at, x.started_at, t.now),
    open_until = CASE WHEN runs.orders <> 'recall' THEN t.now WHEN runs.open = 'callback' THEN runs.open_until
        WHEN x.certain THEN t.now + x.within_ms ELSE coalesce(runs.begun_at, t.now) + x.within_ms END
FROM {rows AcceptedRun}, (SELECT {now} AS now) t
WHERE runs.id = x.id AND runs.token = x.token AND (+runs.node = x.node OR (runs.open = 'callback' AND runs.work <> x.work))
RETURNING runs.id;

-- name: lock_run_alone
-- A run without its job, like every finish; in whatever state it is.
SELECT r.*, j.version, j.spec, j.anchor_at FROM runs r LEFT JOIN jobs j ON j.id = r.job_id WHERE r.id = ?1;

-- name: hold_for_callback
-- Whoever has it, has it no more: it ends in this transaction.
UPDATE runs SET node = NULL, open = 'callback' WHERE id = ?1;

-- name: find_live
SELECT id FROM runs WHERE id = ?1;

-- name: find_ended
-- Who comes with a callback's token names no tenant.
SELECT tenant, tries, attempts FROM history WHERE job_id = ?2 AND slot = ?3 AND id = ?1;

-- name: set_progress
UPDATE runs SET progress = ?3 WHERE id = ?1 AND tries + 1 = ?2;
