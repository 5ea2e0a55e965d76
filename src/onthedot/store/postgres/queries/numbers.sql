-- name: take_job_ids
SELECT nextval('job_ids') AS n FROM generate_series(1, $1::bigint);

-- name: take_run_numbers
SELECT nextval('run_numbers') AS n FROM generate_series(1, $1::bigint);
