-- name: ensure_tenant
INSERT INTO tenants (name, created_at) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: insert_key
INSERT INTO api_keys (tenant, name, scope, hashed, prefix, created_at, expires_at)
SELECT t.id, $2::text, $3::text, $4::text, $5::text, $6::bigint, $7::bigint FROM tenants t WHERE t.name = $1
RETURNING id, tenant, name, scope, prefix, created_at, expires_at, revoked_at, $1::text AS tenant_name;

-- name: find_tenant
SELECT id FROM tenants WHERE name = $1;

-- name: list_keys
SELECT k.id, k.name, k.scope, k.prefix, k.created_at, k.expires_at, k.revoked_at, t.name AS tenant_name
FROM api_keys k JOIN tenants t ON t.id = k.tenant WHERE k.tenant = $1 ORDER BY k.id;

-- name: revoke_key
UPDATE api_keys SET revoked_at = coalesce(revoked_at, {now}) WHERE tenant = $1 AND id = $2;

-- name: find_key
SELECT id, tenant, scope, name FROM api_keys
WHERE hashed = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now});

-- name: any_key
SELECT 1 AS found FROM api_keys LIMIT 1;

-- name: insert_session
INSERT INTO sessions (hashed, key_id, created_at, used_at) VALUES ($1, $2, {now}, {now});

-- name: find_session
SELECT k.id, k.tenant, k.scope, k.name, s.used_at <= {now} - $4::bigint AS unwritten
FROM sessions s JOIN api_keys k ON k.id = s.key_id
WHERE s.hashed = $1 AND s.used_at > {now} - $2::bigint AND s.created_at > {now} - $3::bigint
    AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > {now});

-- name: use_session
UPDATE sessions SET used_at = {now} WHERE hashed = $1;

-- name: end_session
DELETE FROM sessions WHERE hashed = $1;

-- name: drop_old_sessions
DELETE FROM sessions WHERE used_at <= {now} - $1::bigint OR created_at <= {now} - $2::bigint;

-- name: drop_sessions_of_key
DELETE FROM sessions WHERE key_id = $1;

-- name: lock_keys
LOCK TABLE api_keys IN SHARE ROW EXCLUSIVE MODE;

-- name: find_setting_keys
SELECT id, tenant, hashed, scope, name FROM api_keys
WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now}) AND (hashed = $1 OR name = $2);

-- name: find_any_key
SELECT id, tenant FROM api_keys WHERE hashed = $1;

-- name: revive_setting_key
UPDATE api_keys SET name = $2::text, scope = 'admin', expires_at = NULL, revoked_at = NULL WHERE id = $1;
