-- Reports of jobs that run elsewhere (see `runs/checkins.py`).

-- name: find_pinged_job
SELECT id, tenant, key, spec FROM jobs WHERE id = ?1;

-- name: add_pings
INSERT INTO pings (job_id, tenant, recent) VALUES (?1, ?2, '[]') ON CONFLICT DO NOTHING;

-- name: lock_pings
SELECT ok_at, started_at, recent FROM pings WHERE job_id = ?1;

-- name: set_pings
UPDATE pings SET ok_at = ?2, started_at = ?3, recent = ?4 WHERE job_id = ?1;

-- name: pings_of
SELECT job_id, ok_at, started_at, recent FROM pings WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: lock_reporting_runs
-- Those that run, whoever has them: what is in a node's hands and not yet open is reported as well.
SELECT r.*, j.version, j.spec, j.anchor_at FROM runs r JOIN jobs j ON j.id = r.job_id
WHERE {of_job r ?1} AND r.state = 'running' ORDER BY r.id;

-- name: start_reported
UPDATE runs SET begun_at = ?2, open_until = ?3, progress = ?4 WHERE id = ?1;

-- name: last_ended_run
SELECT id, due_at, error FROM history WHERE job_id = ?1 AND status <> 'skipped' ORDER BY slot DESC LIMIT 1;

-- name: hasten_reported
-- A report came before these were open: whoever looks for those whose time is up ends them.
UPDATE runs SET open_until = {now}
WHERE id IN (SELECT value FROM json_each(?1)) AND open = 'callback'
  AND EXISTS (SELECT 1 FROM pings p WHERE p.job_id = runs.job_id AND p.ok_at >= runs.slot);

-- name: wait_longer
UPDATE runs SET open_until = x.until FROM {rows LongerWait}
WHERE runs.id = x.id AND runs.token = x.token AND runs.open = 'callback';

-- name: forget_starts
-- A start without an end is no measure of the next run.
UPDATE pings SET started_at = NULL WHERE job_id IN (SELECT value FROM json_each(?1));

-- name: forget_pings
DELETE FROM pings WHERE job_id IN (SELECT value FROM json_each(?1));
