-- Alerts: incidents and the outbox of messages about them.

-- name: lock_open_incidents
-- There is one writer: nothing is to be locked.
SELECT i.id FROM {rows IncidentKey}
JOIN incidents i ON i.tenant = x.tenant AND i.subject = x.subject AND i.condition = x.condition
WHERE i.closed_at IS NULL ORDER BY i.id;

-- name: open_incidents
-- Found again at something else, it is counted; found again at the same, nothing is written. Not what came about before
-- the last one was over. Who had none yet has not been told: `alerted_at` is null.
INSERT INTO incidents AS i ({columns NewIncident})
SELECT {columns NewIncident x} FROM {rows NewIncident}
WHERE NOT EXISTS (
    SELECT 1 FROM incidents o
    WHERE o.tenant = x.tenant AND o.subject = x.subject AND o.condition = x.condition
      AND o.closed_at IS NOT NULL AND o.closed_at >= x.last_at
)
ON CONFLICT (tenant, subject, condition) WHERE closed_at IS NULL DO UPDATE SET
    count = i.count + excluded.count, reason = excluded.reason, cause = excluded.cause,
    occurrence = excluded.occurrence, output = excluded.output, limit_ms = excluded.limit_ms, title = excluded.title,
    last_at = max(i.last_at, excluded.last_at)
WHERE i.occurrence IS NOT excluded.occurrence
RETURNING id, tenant, job_id, condition, title, reason, ways, alerted_at;

-- name: ways_of_open_incidents
-- Not of what came about before the last one was over.
SELECT i.id, i.tenant, i.subject, i.condition, i.ways FROM {rows NewIncident}
JOIN incidents i ON i.tenant = x.tenant AND i.subject = x.subject AND i.condition = x.condition
WHERE i.closed_at IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM incidents o
    WHERE o.tenant = x.tenant AND o.subject = x.subject AND o.condition = x.condition
      AND o.closed_at IS NOT NULL AND o.closed_at >= x.last_at
  )
ORDER BY i.id;

-- name: set_ways
UPDATE incidents SET ways = ?2, reason = ?3 WHERE id = ?1;

-- name: incidents_told
UPDATE incidents SET alerted_at = ?2 WHERE id IN (SELECT value FROM json_each(?1));

-- name: lock_incidents
SELECT id, tenant, ways, alerted_at, closed_at FROM incidents WHERE id IN (SELECT value FROM json_each(?1));

-- name: close_incident
-- Not if it was found again, later than what shows that it is over: somebody looked before that.
UPDATE incidents SET closed_at = ?2 WHERE id = ?1 AND closed_at IS NULL AND last_at <= ?2
RETURNING id, tenant, ways;

-- name: last_statuses
SELECT status FROM history WHERE job_id = ?1 AND status IN ('done', 'failed') ORDER BY slot DESC, id DESC LIMIT ?2;

-- name: add_deliveries
INSERT INTO alert_deliveries ({columns NewDelivery}, tries) SELECT {columns NewDelivery x}, 0 FROM {rows NewDelivery};

-- name: withdraw_quiet
-- It was over before the quiet hours were: nobody need hear of it.
DELETE FROM alert_deliveries
WHERE incident_id = ?1 AND quiet AND sent_at IS NULL AND failed_at IS NULL AND not_before > {now}
RETURNING channel;

-- name: channels_due
SELECT c.value AS channel FROM json_each(?1) c
WHERE EXISTS (
    SELECT 1 FROM alert_deliveries d
    WHERE d.channel = c.value AND d.sent_at IS NULL AND d.failed_at IS NULL AND d.not_before <= {now} AND {part free_delivery}
);

-- part: free_delivery
-- Nobody has it, or whoever had it is gone or has been silent for long.
(d.taken_by IS NULL OR d.taken_until <= {now} OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = d.taken_by AND n.lost_at IS NULL))

-- name: count_sent
SELECT count(*) AS n FROM alert_deliveries WHERE channel = ?1 AND sent_at > ?2 AND lead;

-- name: take_deliveries
UPDATE alert_deliveries SET taken_by = ?1, taken_until = ?3, tries = tries + 1
WHERE id IN (
    SELECT d.id FROM alert_deliveries d
    WHERE d.channel = ?2 AND d.sent_at IS NULL AND d.failed_at IS NULL AND d.not_before <= {now} AND {part free_delivery}
    ORDER BY d.not_before LIMIT ?4
)
RETURNING id;

-- name: taken_deliveries
SELECT d.id, d.tenant, d.event, d.tries, d.incident_id, i.condition, i.job_id, i.title, i.reason, i.cause, i.occurrence,
    i.output, i.count, i.opened_at, i.closed_at
FROM alert_deliveries d JOIN incidents i ON i.id = d.incident_id
WHERE d.id IN (SELECT value FROM json_each(?1)) ORDER BY d.id;

-- name: deliveries_sent
UPDATE alert_deliveries SET sent_at = ?2, lead = (id = ?3), taken_by = NULL, taken_until = NULL, error = NULL, quiet = false
WHERE id IN (SELECT value FROM json_each(?1));

-- name: deliveries_not_sent
UPDATE alert_deliveries SET
    error = coalesce(?2, error), not_before = ?3, taken_by = NULL, taken_until = NULL,
    tries = CASE WHEN ?4 THEN tries ELSE tries - 1 END,
    failed_at = CASE WHEN ?4 AND tries >= ?5 THEN {now} END
WHERE id IN (SELECT value FROM json_each(?1));

-- name: deliveries_of
SELECT incident_id, channel, event, not_before, tries, error, sent_at, failed_at FROM alert_deliveries
WHERE incident_id IN (SELECT value FROM json_each(?1)) ORDER BY id;

-- name: list_incidents
-- Newest first, before (?2, ?3), opened from ?4 to ?5.
SELECT * FROM incidents
WHERE tenant = ?1 AND (opened_at, id) < (?2, ?3) AND opened_at >= ?4 AND opened_at <= ?5 AND {where}
ORDER BY opened_at DESC, id DESC LIMIT ?6;

-- name: where.any_incident
true

-- name: where.incident_id
id = ?1

-- name: where.incident_job
job_id = ?1

-- name: where.incident_condition
condition = ?1

-- name: where.incident_open
closed_at IS NULL

-- name: where.incident_closed
closed_at IS NOT NULL

-- name: count_open_incidents
SELECT count(*) AS n FROM (SELECT 1 FROM incidents WHERE tenant = ?1 AND closed_at IS NULL LIMIT 1000) o;

-- name: prune_incidents
DELETE FROM incidents WHERE id IN (
    SELECT id FROM incidents WHERE closed_at IS NOT NULL AND closed_at < ?1 ORDER BY closed_at LIMIT ?2
);

-- name: prune_deliveries
-- Of incidents that are gone, and of those that nobody ever took.
DELETE FROM alert_deliveries WHERE id IN (
    SELECT d.id FROM alert_deliveries d
    WHERE d.created_at < ?1 AND NOT EXISTS (SELECT 1 FROM incidents i WHERE i.id = d.incident_id) LIMIT ?2
);

-- name: any_alerting
-- Whether there is a job with alerts of its own, or an incident that may be over.
SELECT EXISTS (SELECT 1 FROM jobs WHERE instr(spec, '"alerts":') > 0)
    OR EXISTS (SELECT 1 FROM incidents WHERE closed_at IS NULL) AS there;

-- name: alerting_jobs
SELECT id FROM jobs WHERE instr(spec, '"alerts":') > 0 AND id > ?1 AND state = 'active' ORDER BY id LIMIT ?2;

-- part: overdue
-- It should have started, and nobody has begun it. Those that wait for a resume, of their job or of all, do not count.
r.state = 'pending' AND r.tries = 0 AND r.kind <> 'backfill' AND (r.parked IS NULL OR r.parked IN ('lane', 'group'))
AND NOT EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL)

-- name: late_runs_of_jobs
SELECT x.job_id, r.id, min(r.due_at) AS due_at FROM {rows WatchedJob}
CROSS JOIN runs r
WHERE x.late_ms IS NOT NULL AND {of_job r x.job_id} AND {part overdue} AND r.due_at <= {now} - x.late_ms
GROUP BY x.job_id;

-- name: late_runs
-- The next runs of jobs: the oldest that should have started before ?1.
WITH RECURSIVE tenants (tenant) AS (
    SELECT min(tenant) FROM jobs
    UNION ALL
    SELECT (SELECT min(j.tenant) FROM jobs j WHERE j.tenant > t.tenant) FROM tenants t WHERE t.tenant IS NOT NULL
)
SELECT f.job_id, f.id, f.due_at FROM (
    SELECT r.job_id, r.id, r.due_at, r.state, r.tries FROM tenants t CROSS JOIN runs r
    WHERE r.tenant = t.tenant AND r.cursor AND r.parked IS NULL AND r.due_at = r.slot AND r.slot <= ?1
    UNION ALL
    SELECT r.job_id, r.id, r.due_at, r.state, r.tries FROM tenants t CROSS JOIN runs r
    WHERE r.tenant = t.tenant AND r.cursor AND r.parked IS NULL AND r.due_at <> r.slot AND r.due_at <= ?1
) f
WHERE f.state = 'pending' AND f.tries = 0
  AND NOT EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL) LIMIT ?2;

-- name: long_runs
-- Runs that were begun before ?1 and have not ended, after the one that the look before ended with.
SELECT job_id, id, claimed_at, max(claimed_at, due_at) AS since FROM runs
WHERE state = 'running' AND claimed_at <= ?1 AND due_at <= ?1 AND (claimed_at, id) > (?3, ?4)
ORDER BY claimed_at, id LIMIT ?2;

-- name: last_durations
SELECT duration_ms FROM history
WHERE job_id = ?1 AND status = 'done' AND duration_ms IS NOT NULL ORDER BY slot DESC, id DESC LIMIT 100;

-- name: unroutable_runs
SELECT c.job_id, min(c.id) AS id, min(c.due_at) AS due_at FROM (
    SELECT c.job_id, c.id, c.due_at FROM runs c
    WHERE {where} AND c.requires = ?1 AND c.ready_at <= {now} AND c.due_at <= {now} LIMIT ?2
) c GROUP BY c.job_id;

-- name: unreached_runs
-- Of those whose work goes on at that place, and no node has them.
SELECT c.job_id, min(c.id) AS id FROM (
    SELECT c.job_id, c.id FROM runs c WHERE c.open = 'adopt' AND c.requires = ?1 LIMIT ?2
) c GROUP BY c.job_id;

-- name: open_incidents_after
SELECT i.id, i.tenant, i.subject, i.condition, i.job_id, i.title, i.reason, i.cause, i.occurrence, i.limit_ms, i.ways,
    i.last_at, i.alerted_at, j.state AS job_state, j.one_off, s.last_status, s.last_finished_at, s.last_lateness_ms,
    s.last_duration_ms,
    i.job_id IS NOT NULL AND EXISTS (SELECT 1 FROM dead_letters d WHERE d.job_id = i.job_id) AS has_dead,
    i.occurrence IS NOT NULL AND EXISTS (SELECT 1 FROM runs r WHERE r.id = i.occurrence) AS lives,
    i.condition = 'late' AND EXISTS (
        SELECT 1 FROM runs r WHERE {of_job r i.job_id} AND {part overdue} AND r.due_at <= {now} - i.limit_ms
    ) AS still_late,
    CASE WHEN j.one_off THEN (
        SELECT max(h.finished_at) FROM history h WHERE h.job_id = i.job_id AND h.status = 'done'
    ) END AS once_done_at
FROM incidents i
LEFT JOIN jobs j ON j.id = i.job_id AND j.tenant = i.tenant
LEFT JOIN job_stats s ON s.job_id = i.job_id
WHERE i.closed_at IS NULL AND i.id > ?1 ORDER BY i.id LIMIT ?2;

-- name: lost_nodes
-- Nodes that were lost since ?1, unless one of that name has started after.
SELECT n.id, n.name, n.host, n.lost_at FROM nodes n
WHERE n.lost_at >= ?1
  AND NOT EXISTS (SELECT 1 FROM nodes o WHERE o.name = n.name AND o.lost_at IS NULL AND o.started_at >= n.lost_at)
ORDER BY n.id;

-- name: names_of_live_nodes
SELECT name, max(started_at) AS started_at FROM nodes WHERE lost_at IS NULL GROUP BY name;

-- name: objective_jobs
SELECT id, spec FROM jobs WHERE instr(spec, '"objective":') > 0 AND id > ?1 ORDER BY id LIMIT ?2;

-- name: counted_days
SELECT job_id, day, late_ms FROM objective_days WHERE job_id IN (SELECT value FROM json_each(?1)) AND day >= ?2;

-- name: count_on_time
-- What ended of the slots from ?2 to before ?3, and how much of it within ?4 ms. Given up as too late counts as late.
SELECT coalesce(sum(CASE WHEN status = 'skipped' THEN coalesce(slots, 1) ELSE 1 END), 0) AS runs,
    count(*) FILTER (WHERE status <> 'skipped' AND lateness_ms <= ?4) AS on_time
FROM (
    SELECT status, slots, lateness_ms FROM history
    WHERE job_id = ?1 AND slot >= ?2 AND slot < ?3 AND kind = 'scheduled'
      AND ((status IN ('done', 'failed') AND lateness_ms IS NOT NULL)
           OR (status = 'skipped' AND reason IN ('late', 'coalesced')))
    ORDER BY slot DESC LIMIT 200000
) h;

-- name: put_objective_day
INSERT INTO objective_days (job_id, day, late_ms, runs, on_time) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (job_id, day) DO UPDATE SET late_ms = excluded.late_ms, runs = excluded.runs, on_time = excluded.on_time;

-- name: objective_days_of
SELECT day, runs, on_time FROM objective_days WHERE job_id = ?1 AND day >= ?2 AND late_ms = ?3;

-- name: prune_objective_days
DELETE FROM objective_days WHERE (job_id, day) IN (SELECT job_id, day FROM objective_days WHERE day < ?1 LIMIT ?2);
