-- Jobs whose last run failed or was late: noticed when it ends so, forgotten in portions.

-- name: notice_jobs
-- What is noticed again and again is written once in half a minute.
INSERT INTO noticed_jobs AS n (tenant, what, job_id, noticed_at)
SELECT x.tenant, x.what, x.job_id, x.noticed_at FROM {rows NoticedJob} WHERE true
ON CONFLICT (tenant, what, job_id) DO UPDATE SET noticed_at = excluded.noticed_at
WHERE n.noticed_at < excluded.noticed_at - 30000;

-- name: noticed_after
SELECT n.tenant, n.what, n.job_id FROM noticed_jobs n WHERE (n.tenant, n.what, n.job_id) > ($1::bigint, $2::text, $3::bigint)
ORDER BY n.tenant, n.what, n.job_id LIMIT 1 OFFSET $4 - 1;

-- name: forget_noticed
-- Those up to ($4, $5, $6) of which it is no longer so. Not what was noticed just now: its statistics may not be seen yet.
DELETE FROM noticed_jobs AS n
WHERE (n.tenant, n.what, n.job_id) > ($1::bigint, $2::text, $3::bigint) AND (n.tenant, n.what, n.job_id) <= ($4::bigint, $5::text, $6::bigint)
  AND n.noticed_at < {now} - {MINUTE_MS}
  AND NOT EXISTS (
    SELECT 1 FROM jobs j WHERE j.id = n.job_id AND j.tenant = n.tenant
      AND CASE n.what WHEN 'failing' THEN ({part last_status}) = 'failed'
          ELSE (SELECT s.last_lateness_ms FROM job_stats s WHERE s.job_id = j.id) > {LATE_MS} END);
