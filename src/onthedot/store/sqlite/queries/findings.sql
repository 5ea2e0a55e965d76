-- What the node that holds the duty has computed, and the rows from which it computes the proof.

-- name: finding
SELECT found, at FROM findings WHERE name = ?1 AND tenant = ?2;

-- name: drop_findings
DELETE FROM findings WHERE name = ?1;

-- name: add_findings
INSERT INTO findings ({columns DutyFinding}) SELECT {columns DutyFinding x} FROM {rows DutyFinding};

-- part: proof_job
SELECT id, tenant, key, spec, version, anchor_at, created_at, updated_at FROM jobs

-- name: proof_jobs
-- Jobs from ?1 to ?2 whose slots must have been decided: of one-offs also those that ended after ?3.
{part proof_job}
WHERE id > ?1 AND id <= ?2 AND (state = 'active' OR (one_off AND state = 'ended' AND ended_at >= ?3)) ORDER BY id;

-- name: proof_suspects
{part proof_job}
WHERE id IN (SELECT value FROM json_each(?1)) AND (state = 'active' OR (one_off AND state = 'ended')) ORDER BY id;

-- name: newest_versions
-- So many versions of each of these jobs, the newest first.
SELECT v.job_id, v.version, v.at, v.verb, v.spec FROM jobs j
JOIN job_versions v ON v.job_id = j.id AND v.version > j.version - ?2
WHERE j.id IN (SELECT value FROM json_each(?1)) ORDER BY v.job_id, v.version DESC;

-- name: proof_runs
SELECT r.id, r.job_id, r.slot, r.cursor FROM {rows CheckedJob} CROSS JOIN runs r
WHERE {of_job r x.job_id} AND r.kind = 'scheduled';

-- name: proof_history
-- Also ranges that began before and reach into the interval.
SELECT h.id, h.job_id, h.slot, h.until_slot FROM {rows CheckedJob} CROSS JOIN history h INDEXED BY history_of_job
WHERE h.job_id = x.job_id AND h.slot >= x.since AND h.slot < x.until AND h.kind = 'scheduled'
UNION ALL
SELECT h.id, h.job_id, h.slot, h.until_slot FROM {rows CheckedJob} CROSS JOIN history h
WHERE h.rowid IN (
    SELECT b.rowid FROM history b INDEXED BY history_of_job_not_done
    WHERE b.job_id = x.job_id AND b.status = 'skipped' AND b.status <> 'done' AND b.slot < x.since
    ORDER BY b.slot DESC LIMIT 20
) AND h.until_slot >= x.since AND h.kind = 'scheduled';
