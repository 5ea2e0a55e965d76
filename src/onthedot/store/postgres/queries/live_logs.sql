-- What runs print while they run.

-- name: put_live_logs
-- An older attempt's node that wakes up late does not take the place of the newer one.
INSERT INTO live_logs AS l (run_id, tenant, token, log, updated_at)
SELECT x.run_id, x.tenant, x.token, x.text, {now} FROM {rows LiveLog}
ORDER BY x.run_id
ON CONFLICT (run_id) DO UPDATE SET token = excluded.token, log = excluded.log, updated_at = excluded.updated_at
WHERE excluded.token >= l.token;

-- name: drop_live_logs
DELETE FROM live_logs l USING {rows EndedLog}
WHERE l.run_id = x.run_id AND l.token <= x.token;

-- name: get_live_log
SELECT l.log FROM live_logs l JOIN runs r ON r.id = l.run_id AND r.token = l.token
WHERE l.run_id = $2 AND l.tenant = $1 AND r.state = 'running';

-- name: prune_live_logs
DELETE FROM live_logs WHERE run_id = ANY (ARRAY(
    SELECT l.run_id FROM live_logs l
    WHERE l.updated_at < $1
      AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = l.run_id AND r.token = l.token AND r.state = 'running')
    LIMIT $2
));
