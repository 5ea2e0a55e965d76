-- Moving a store to another database. What is being moved, or was, has a row in `meta` that no version can live with.

-- name: find_mark
SELECT name FROM meta WHERE number = {MOVED_MARK};

-- name: set_mark
INSERT INTO meta (number, name, breaking, applied_at) VALUES ({MOVED_MARK}, ?1, 1, {now})
ON CONFLICT (number) DO UPDATE SET name = excluded.name;

-- name: drop_mark
DELETE FROM meta WHERE number = {MOVED_MARK};

-- name: set_installation_value
INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: drop_installation_value
DELETE FROM installation WHERE name = ?1;

-- name: beating_nodes
-- Who has the file open has its lock: there is nobody else.
SELECT name FROM nodes WHERE 0 AND beat_at > ?1;

-- name: declare_all_lost
UPDATE nodes SET lost_at = {now} WHERE lost_at IS NULL;

-- name: stored_tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name;

-- name: stored_columns
-- In the order of the table; `key`: its place in the primary key, 0 if it is none.
SELECT name, lower(type) AS type, pk AS key FROM pragma_table_info(?1) ORDER BY cid;

-- name: last_numbers
SELECT name, last FROM sequences UNION ALL SELECT name, seq FROM sqlite_sequence;

-- name: raise_sequence
UPDATE sequences SET last = max(last, ?2) WHERE name = ?1;

-- name: raise_identity
-- Its table has a row there as soon as it has one itself; what was deleted since is counted, too.
UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1;

-- name: stale_jobs
-- Jobs after ?1 that have a run whose time has come by ?2, or one that a node had.
SELECT DISTINCT tenant, job_id FROM runs WHERE job_id > ?1 AND (due_at <= ?2 OR state = 'running') ORDER BY job_id LIMIT ?3;

-- name: stale_runs
SELECT id, tenant, job_id, slot, state, cursor FROM runs
WHERE {of_job runs ?1} AND (due_at <= ?2 OR state = 'running') ORDER BY id;

-- name: settle_job
UPDATE jobs SET state = ?2, claimed_slot = ?3, slots_used = ?4, ended_at = CASE WHEN ?2 = 'ended' THEN {now} END WHERE id = ?1;

-- name: tell_restored
UPDATE history SET outcome = {part unknown_outcome}, error = ?2
WHERE job_id = ?1 AND status = 'failed' AND reason = 'restored' AND outcome IS NULL;

-- name: stop_operations
UPDATE operations SET state = 'stopped', reason = ?1, updated_at = {now}, finished_at = {now}, waiting_for = 0, watched = '[]'
WHERE state = 'running';

-- name: drop_all_notes
DELETE FROM notes;

-- name: drop_waiting_alerts
UPDATE alert_deliveries SET failed_at = {now}, error = ?1, taken_by = NULL, taken_until = NULL
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
