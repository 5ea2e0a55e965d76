-- name: lock_tenant
SELECT id FROM tenants WHERE id = $1 FOR UPDATE;

-- name: jobs_of_source
SELECT id, key, spec, source_paused, origin FROM jobs WHERE tenant = $1 AND source = $2 ORDER BY id;

-- name: jobs_by_ids
SELECT id, key, spec, source_paused FROM jobs WHERE tenant = $1 AND id = ANY($2::bigint[]) ORDER BY id;

-- name: set_source
UPDATE jobs SET source = $2 WHERE tenant = $1 AND id = ANY($3::bigint[]);

-- name: set_origin
UPDATE jobs SET origin = $4
WHERE tenant = $1 AND source = $2 AND key = ANY($3::text[]) AND origin IS DISTINCT FROM $4;

-- name: set_source_paused
UPDATE jobs j SET source_paused = x.paused FROM {rows SaidOfPause} WHERE j.tenant = $1 AND j.id = x.id;
