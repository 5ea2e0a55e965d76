-- name: find_meta
SELECT 1 AS found WHERE to_regclass('meta') IS NOT NULL;

-- name: create_meta
CREATE TABLE IF NOT EXISTS meta (
    number     bigint PRIMARY KEY,
    name       text NOT NULL,
    breaking   boolean NOT NULL,
    applied_at bigint NOT NULL
);

-- name: lock_meta
LOCK TABLE meta IN EXCLUSIVE MODE;

-- name: insert_version
INSERT INTO meta (number, name, breaking, applied_at) VALUES ($1, $2, $3, (extract(epoch from clock_timestamp()) * 1000)::bigint)
ON CONFLICT DO NOTHING;

-- name: versions
SELECT number, name, breaking FROM meta ORDER BY number;
