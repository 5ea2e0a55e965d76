-- Notes: what the end of a run causes elsewhere, until somebody has carried it out.

-- name: add_notes
-- Of jobs that are there: who deleted one wants nothing more of it.
INSERT INTO notes ({columns NewNote}) SELECT {columns NewNote x} FROM {rows NewNote} JOIN jobs j ON j.id = x.job_id;

-- name: any_notes
SELECT 1 AS there FROM notes WHERE id > ?1 LIMIT 1;

-- name: take_notes
-- Those of one kind that are carried out together, the kind of the oldest: chains and alerts of any jobs, all else of one job. There
-- is one writer, so nobody else has any in hand.
WITH first AS MATERIALIZED (SELECT job_id, kind FROM notes WHERE id > ?1 ORDER BY id LIMIT 1)
SELECT id, kind, tenant, job_id, run_id, said, created_at FROM notes
WHERE kind = (SELECT kind FROM first)
  AND CASE WHEN kind IN ('chain', 'alert') THEN id > ?1 ELSE job_id = (SELECT job_id FROM first) END
ORDER BY id LIMIT ?2;

-- name: delete_notes
DELETE FROM notes WHERE id IN (SELECT value FROM json_each(?1));

-- name: count_old_notes
-- Of the ten thousand oldest, how many were written before ?1, and when the first of them.
SELECT count(*) AS notes, min(n.created_at) AS since
FROM (SELECT created_at FROM notes ORDER BY id LIMIT 10000) n WHERE n.created_at <= ?1;
