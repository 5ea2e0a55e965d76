-- What became of the slots of a job.

-- part: entry
h.id, h.slot, h.kind, h.status, h.reason, h.until_slot, h.slots, h.started_at

-- name: slot_entries
SELECT {part entry} FROM history h
WHERE h.tenant + 0 = ?1 AND h.job_id = ?2 AND h.slot >= ?3 AND h.slot <= ?4
ORDER BY h.slot DESC, h.id DESC LIMIT ?5;

-- name: ranges_into
-- Ranges of skipped slots that began before ?3 and end after it.
SELECT {part entry} FROM (
    SELECT * FROM history h INDEXED BY history_of_job_not_done
    WHERE h.tenant + 0 = ?1 AND h.job_id = ?2 AND h.status = 'skipped' AND h.status <> 'done' AND h.slot < ?3
    ORDER BY h.slot DESC LIMIT 100
) h WHERE h.until_slot >= ?3;

-- name: ranges_within
SELECT {part entry} FROM (
    SELECT * FROM history h INDEXED BY history_of_job_not_done
    WHERE h.tenant + 0 = ?1 AND h.job_id = ?2 AND h.status = 'skipped' AND h.status <> 'done'
      AND h.slot >= ?3 AND h.slot <= ?4
    ORDER BY h.slot DESC LIMIT ?5
) h WHERE h.until_slot IS NOT NULL;

-- name: ended_by_quarter
-- Ranges count as nothing here: they may be of many days.
SELECT h.slot / 900000 AS quarter, h.status, count(*) AS looked_at, count(*) - count(h.until_slot) AS n, min(h.slot) AS oldest
FROM (
    SELECT h.slot, h.status, h.until_slot FROM history h
    WHERE h.tenant + 0 = ?1 AND h.job_id = ?2 AND h.slot >= ?3 AND h.slot <= ?4
    ORDER BY h.slot DESC, h.id DESC LIMIT ?5
) h
GROUP BY 1, 2;

-- name: live_slots
-- Live runs with their slots in between, whether due or not; but for the cursor, which is the job's next.
SELECT r.id, r.slot, r.kind, r.state, r.due_at, r.begun_at, r.tries FROM runs r
WHERE r.tenant + 0 = ?1 AND {of_job r ?2} AND r.slot >= ?3 AND r.slot <= ?4 AND NOT r.cursor;
