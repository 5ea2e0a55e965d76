-- What jobs were before they were changed.

-- name: write_versions
-- The version that is replaced has a row already, unless it is the first one that anybody replaces.
INSERT INTO job_versions ({columns NewVersion}) SELECT {columns NewVersion x} FROM {rows NewVersion} WHERE true
ON CONFLICT DO NOTHING;

-- name: drop_versions_until
DELETE FROM job_versions WHERE job_id = ?1 AND version <= ?2;

-- name: list_versions
-- As many as a page holds, and how many there are.
SELECT v.version, v.at, v.verb, v.actor, v.actor_kind, v.spec, w.found FROM (
    SELECT p.version, sum(p.bytes) OVER (ORDER BY p.version DESC) - p.bytes AS before, count(*) OVER () AS found FROM (
        SELECT version, length(CAST(spec AS BLOB)) AS bytes FROM job_versions
        WHERE job_id = ?1 AND version < ?2 ORDER BY version DESC LIMIT ?3
    ) p
) w JOIN job_versions v ON v.job_id = ?1 AND v.version = w.version
WHERE w.before < {PAGE_BYTES} ORDER BY w.version DESC;

-- name: find_version
SELECT spec FROM job_versions WHERE job_id = ?1 AND version = ?2;

-- name: prune_versions
DELETE FROM job_versions WHERE (job_id, version) IN (SELECT job_id, version FROM job_versions WHERE at < ?1 ORDER BY at LIMIT ?2);

-- name: delete_versions
DELETE FROM job_versions WHERE job_id IN (SELECT value FROM json_each(?1));
