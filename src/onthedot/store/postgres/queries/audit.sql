-- Who changed what.

-- name: write_audit
INSERT INTO audit_log ({columns NewAuditEntry}) SELECT {columns NewAuditEntry x} FROM {rows NewAuditEntry};

-- name: list_audit
-- Newest first, before ($2, $3), from $4 to $5.
SELECT id, {columns NewAuditEntry} FROM audit_log
WHERE tenant = $1 AND (at, id) < ($2, $3) AND at >= $4 AND at <= $5 AND {where}
ORDER BY at DESC, id DESC LIMIT $6;

-- name: where.any_audit
true

-- name: where.audit_job
job_id = $1

-- name: where.audit_key
job_key = $1

-- name: where.audit_actor
actor = $1

-- name: where.audit_verb
verb = $1

-- name: prune_audit
DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < $1 ORDER BY at LIMIT $2);
