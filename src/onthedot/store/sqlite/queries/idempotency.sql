-- name: claim_idempotency
INSERT INTO idempotency ({columns KeptAnswer}, created_at)
SELECT {columns KeptAnswer x}, ?1 FROM {rows KeptAnswer} WHERE true
ON CONFLICT (tenant, key) DO UPDATE
SET fingerprint = excluded.fingerprint, result = excluded.result, created_at = excluded.created_at
WHERE idempotency.created_at < ?2
RETURNING tenant, key;

-- name: read_idempotency
SELECT i.tenant, i.key, i.fingerprint, i.result, i.created_at
FROM {rows UsedKey} JOIN idempotency i ON i.tenant = x.tenant AND i.key = x.key;

-- name: keep_answer
UPDATE idempotency SET result = ?3 WHERE tenant = ?1 AND key = ?2;

-- name: release_idempotency
DELETE FROM idempotency
WHERE (tenant, key) IN (SELECT x.tenant, x.key FROM {rows UsedKey});

-- name: prune_idempotency
DELETE FROM idempotency
WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency WHERE created_at < ?1 ORDER BY created_at LIMIT ?2);
