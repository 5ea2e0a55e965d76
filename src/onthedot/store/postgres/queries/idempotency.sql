-- name: claim_idempotency
INSERT INTO idempotency (tenant, key, fingerprint, result, created_at)
SELECT u.*, $1::bigint FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[]) AS u
ON CONFLICT (tenant, key) DO UPDATE
SET fingerprint = excluded.fingerprint, result = excluded.result, created_at = excluded.created_at
WHERE idempotency.created_at < $2
RETURNING tenant, key;

-- name: read_idempotency
SELECT i.tenant, i.key, i.fingerprint, i.result, i.created_at
FROM unnest($1::bigint[], $2::text[]) AS u(tenant, key) JOIN idempotency i ON i.tenant = u.tenant AND i.key = u.key;

-- name: keep_answer
UPDATE idempotency SET result = $3 WHERE tenant = $1 AND key = $2;

-- name: release_idempotency
DELETE FROM idempotency i USING unnest($1::bigint[], $2::text[]) AS u(tenant, key)
WHERE i.tenant = u.tenant AND i.key = u.key;

-- name: prune_idempotency
DELETE FROM idempotency
WHERE (tenant, key) IN (SELECT tenant, key FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2);
