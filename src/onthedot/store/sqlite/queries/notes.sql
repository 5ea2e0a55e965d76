-- Notes: what the end of a run causes elsewhere, until somebody has carried it out.

-- name: add_notes
INSERT INTO notes ({columns NewNote}) SELECT {columns NewNote x} FROM {rows NewNote};

-- name: any_notes
SELECT 1 AS there FROM notes WHERE id > ?1 LIMIT 1;

-- name: take_notes
-- Those of one job, the one whose note is the oldest. There is one writer, so nobody else has any in hand.
SELECT id, kind, tenant, job_id, run_id, said FROM notes
WHERE job_id = (SELECT job_id FROM notes WHERE id > ?1 ORDER BY id LIMIT 1)
ORDER BY id LIMIT ?2;

-- name: delete_notes
DELETE FROM notes WHERE id IN (SELECT value FROM json_each(?1));
