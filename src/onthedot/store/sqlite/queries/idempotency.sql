-- name: claim_idempotency
INSERT INTO idempotency (tenant, key, fingerprint, result, created_at)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), ?1
FROM json_each(?3)
WHERE true
ON CONFLICT (tenant, key) DO UPDATE
SET fingerprint = excluded.fingerprint, result = excluded.result, created_at = excluded.created_at
WHERE idempotency.created_at < ?2
RETURNING tenant, key;

-- name: read_idempotency
SELECT i.tenant, i.key, i.fingerprint, i.result, i.created_at
FROM json_each(?1) u
JOIN idempotency i ON i.tenant = json_extract(u.value, '$[0]') AND i.key = json_extract(u.value, '$[1]');

-- name: keep_answer
UPDATE idempotency SET result = ?3 WHERE tenant = ?1 AND key = ?2;

-- name: release_idempotency
DELETE FROM idempotency
WHERE (tenant, key) IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?1));

-- name: prune_idempotency
DELETE FROM idempotency
WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency WHERE created_at < ?1 ORDER BY created_at LIMIT ?2);
