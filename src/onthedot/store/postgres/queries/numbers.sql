-- name: take_job_ids
SELECT nextval('job_ids') AS n FROM generate_series(1, $1::bigint);

-- name: open_group
SELECT {now} AS now, ARRAY(SELECT nextval('job_ids') FROM generate_series(1, $1::bigint)) AS ids;

-- name: take_run_numbers
SELECT nextval('run_numbers') AS n FROM generate_series(1, $1::bigint);
