-- name: lock_tenant
SELECT id FROM tenants WHERE id = ?1;

-- name: jobs_of_source
SELECT id, key, spec, source_paused, origin FROM jobs WHERE tenant = ?1 AND source = ?2 ORDER BY id;

-- name: jobs_by_ids
SELECT id, key, spec, source_paused FROM jobs
WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2)) ORDER BY id;

-- name: set_source
UPDATE jobs SET source = ?2 WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?3));

-- name: set_origin
UPDATE jobs SET origin = ?4
WHERE tenant = ?1 AND source = ?2 AND key IN (SELECT value FROM json_each(?3)) AND origin IS NOT ?4;

-- name: set_source_paused
UPDATE jobs SET source_paused = x.paused FROM {rows SaidOfPause} WHERE jobs.tenant = ?1 AND jobs.id = x.id;
