-- What `onthedot doctor` wants to know of the database itself.

-- name: durability
PRAGMA synchronous;

-- name: last_failover
SELECT system, timeline, previous, changed_at FROM lineage WHERE previous IS NOT NULL;

-- name: count_all_dead
SELECT count(*) AS n FROM dead_letters;
