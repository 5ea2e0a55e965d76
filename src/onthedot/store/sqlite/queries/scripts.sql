-- name: insert_script
INSERT INTO scripts (tenant, id, name, size, created_at) VALUES (?1, ?2, ?3, ?4, {now}) ON CONFLICT DO NOTHING;

-- name: find_script
SELECT id, name, size, created_at FROM scripts WHERE tenant = ?1 AND id = ?2;

-- name: find_scripts
SELECT s.id FROM scripts s JOIN json_each(?2) wanted ON s.id = wanted.value WHERE s.tenant = ?1;

-- name: list_scripts
SELECT id, name, size, created_at FROM scripts WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3;

-- name: jobs_of_script
-- By the index of targets: a tenant's jobs of that one kind are read, and no others.
SELECT j.id, j.key FROM jobs j
WHERE j.tenant = ?1 AND j.target_type = ?2 AND j.state <> 'ended' AND json_extract(j.spec, '$.target.script') = ?3
ORDER BY j.id LIMIT ?4;

-- name: delete_script
DELETE FROM scripts WHERE tenant = ?1 AND id = ?2;
