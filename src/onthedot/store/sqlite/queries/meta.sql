-- name: find_meta
SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'meta';

-- name: create_meta
CREATE TABLE IF NOT EXISTS meta (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    breaking   INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
);

-- name: lock_meta
SELECT 1; -- BEGIN IMMEDIATE has locked it all

-- name: insert_version
INSERT INTO meta (number, name, breaking, applied_at) VALUES (?1, ?2, ?3, {now})
ON CONFLICT DO NOTHING;

-- name: versions
SELECT number, name, breaking FROM meta ORDER BY number;
