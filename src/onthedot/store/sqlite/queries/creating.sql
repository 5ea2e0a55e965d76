-- A small group of simple jobs goes in as any other group does.

-- name: add_jobs
/* open_group, copy_jobs and copy_runs: no statement here writes into two tables, and there are no round trips to save */

-- name: add_job
/* the same */
