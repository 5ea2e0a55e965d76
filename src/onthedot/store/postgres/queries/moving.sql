-- Moving a store to another database. What is being moved, or was, has a row in `meta` that no version can live with.

-- name: find_mark
SELECT name FROM meta WHERE number = {MOVED_MARK};

-- name: set_mark
INSERT INTO meta (number, name, breaking, applied_at) VALUES ({MOVED_MARK}, $1, true, {now})
ON CONFLICT (number) DO UPDATE SET name = excluded.name;

-- name: drop_mark
DELETE FROM meta WHERE number = {MOVED_MARK};

-- name: set_installation_value
INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: drop_installation_value
DELETE FROM installation WHERE name = $1;

-- name: beating_nodes
SELECT name FROM nodes WHERE lost_at IS NULL AND beat_at > {now} - $1::bigint ORDER BY name;

-- name: declare_all_lost
UPDATE nodes SET lost_at = {now} WHERE lost_at IS NULL;

-- name: stored_tables
SELECT relname::text AS name FROM pg_class
WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = current_schema()::regnamespace ORDER BY relname;

-- name: stored_columns
-- In the order of the table; `key`: its place in the primary key, 0 if it is none.
SELECT a.attname::text AS name, format_type(a.atttypid, NULL) AS type,
    coalesce(array_position(i.indkey::smallint[], a.attnum), -1) + 1 AS key
FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;

-- name: last_numbers
SELECT s.name, coalesce(q.last_value, 0) AS last
FROM (
    SELECT 'job_ids' AS name, 'job_ids'::regclass AS sequence
    UNION ALL SELECT 'run_numbers', 'run_numbers'::regclass
    UNION ALL SELECT c.relname::text, pg_get_serial_sequence(c.relname::text, a.attname::text)::regclass
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> ''
    WHERE c.relnamespace = current_schema()::regnamespace
) s
JOIN pg_class p ON p.oid = s.sequence
JOIN pg_sequences q ON q.schemaname = current_schema() AND q.sequencename = p.relname;

-- name: raise_sequence
SELECT setval($1::text::regclass, $2::bigint);

-- name: raise_identity
SELECT setval(pg_get_serial_sequence($1::text, 'id'), $2::bigint);

-- name: stale_jobs
-- Jobs after $1 that have a run whose time has come by $2, or one that a node had.
SELECT DISTINCT tenant, job_id FROM runs WHERE job_id > $1 AND (due_at <= $2 OR state = 'running') ORDER BY job_id LIMIT $3;

-- name: stale_runs
SELECT id, tenant, job_id, slot, state, cursor FROM runs
WHERE {of_job runs $1} AND (due_at <= $2 OR state = 'running') ORDER BY id FOR UPDATE;

-- name: settle_job
UPDATE jobs SET state = $2::text, claimed_slot = $3, slots_used = $4,
    ended_at = CASE WHEN $2::text = 'ended' THEN {now} END WHERE id = $1;

-- name: tell_restored
UPDATE history SET outcome = {part unknown_outcome}, error = $2
WHERE job_id = $1 AND status = 'failed' AND reason = 'restored' AND outcome IS NULL;

-- name: stop_operations
UPDATE operations SET state = 'stopped', reason = $1, updated_at = {now}, finished_at = {now}, waiting_for = 0, watched = '[]'
WHERE state = 'running';

-- name: drop_all_notes
DELETE FROM notes;

-- name: drop_waiting_alerts
UPDATE alert_deliveries SET failed_at = {now}, error = $1, taken_by = NULL, taken_until = NULL
WHERE sent_at IS NULL AND failed_at IS NULL;

-- name: put_off_repeats
-- What lasts is told again only when it has lasted here.
UPDATE incidents SET alerted_at = {now} WHERE closed_at IS NULL AND alerted_at IS NOT NULL;

-- name: forget_nodes
-- Long ago, so that nobody is alerted.
UPDATE nodes SET lost_at = 1 WHERE lost_at IS NULL;

-- name: drop_all_sessions
DELETE FROM sessions;

-- name: drop_all_live_logs
DELETE FROM live_logs;

-- part: unknown_outcome
'{"kind":"unknown"}'
