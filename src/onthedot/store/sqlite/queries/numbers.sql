-- name: take_job_ids
UPDATE sequences SET last = last + ?1 WHERE name = 'job_ids' RETURNING last AS n;

-- name: open_group
UPDATE sequences SET last = last + ?1 WHERE name = 'job_ids' RETURNING last AS ids, {now} AS now;

-- name: take_run_numbers
UPDATE sequences SET last = last + ?1 WHERE name = 'run_numbers' RETURNING last AS n;
