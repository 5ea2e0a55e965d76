-- Chains: which jobs name which others to follow them (see `jobs/chains.py`).

-- name: insert_chains
INSERT INTO job_chains ({columns ChainedJob}) SELECT {columns ChainedJob x} FROM {rows ChainedJob};

-- name: delete_chains
DELETE FROM job_chains WHERE job_id = ANY ($1::bigint[]);

-- name: lock_named
-- Jobs that somebody is about to name: nobody deletes them before that is written, and claims go on.
SELECT id, key FROM jobs WHERE tenant = $1 AND key = ANY ($2::text[]) ORDER BY id FOR KEY SHARE;

-- name: chains_around
-- Whatever names what comes after $2 or before $3, keys both: no cycle that a new name closes, and no chain that it makes
-- longer, lies outside of that.
WITH RECURSIVE down (key) AS (
    SELECT unnest($2::text[]) COLLATE "C"
    UNION
    SELECT c.target_key FROM down d JOIN job_chains c ON c.tenant = $1 AND c.source_key = d.key
), up (key) AS (
    SELECT unnest($3::text[]) COLLATE "C"
    UNION
    SELECT c.source_key FROM up u JOIN job_chains c ON c.tenant = $1 AND c.target_key = u.key
    WHERE c.source_key IS NOT NULL
)
SELECT DISTINCT c.source_key, c.target_key FROM (SELECT key FROM down UNION SELECT key FROM up) k
JOIN job_chains c ON c.tenant = $1 AND c.source_key = k.key;

-- name: naming_jobs
-- Who names these jobs.
SELECT c.job_id, c.edge, c.source_key, c.target_key
FROM {rows KeyOfJob} JOIN job_chains c ON c.tenant = x.tenant AND c.target_key = x.key
ORDER BY c.target_key, c.job_id, c.edge;

-- name: add_follower_params
-- What a run that a chain has started was given, and how many runs stand before it.
INSERT INTO run_params ({columns FollowerParams}) SELECT {columns FollowerParams x} FROM {rows FollowerParams};

-- name: depths_of
SELECT run_id, depth FROM run_params WHERE run_id = ANY ($1::text[]) AND depth IS NOT NULL;

-- name: followers_of
-- The runs that the end of this one has started.
SELECT run_id FROM run_params WHERE parent = $2 AND tenant = $1 ORDER BY run_id;
