-- What a node is told about runs it holds, what it gives back; cancel and redrive.

-- name: news_of
-- The time, and what users want of this node's runs: at least one row, without an id if they want nothing.
-- While all is paused, each run that may not have begun is recalled again and again: so is what was being claimed then.
SELECT n.now_us, r.id, r.token, r.orders
FROM (SELECT {now_us} AS now_us) n
LEFT JOIN (
    SELECT id, token, orders FROM runs WHERE node = $1 AND orders IS NOT NULL AND state = 'running'
    UNION ALL
    SELECT id, token, 'recall' FROM runs
    WHERE EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL)
      AND node = $1 AND state = 'running' AND orders IS NULL AND begun_at IS NULL AND kind <> 'manual'
) r ON true
ORDER BY r.id;

-- name: held_by
SELECT id, token FROM runs WHERE node = $1 AND state = 'running' ORDER BY id;

-- name: lock_run
SELECT id, job_id, slot, state, cursor, recurring, node, token, open FROM runs WHERE id = $1 AND tenant = $2 FOR UPDATE;

-- name: ended_runs
-- Runs to be driven again, with what they were. Their jobs must be there still.
SELECT h.id, h.job_id, h.slot
FROM {rows EndedKey} JOIN history h ON h.tenant = $1 AND h.slot = x.slot AND h.id = x.id;
