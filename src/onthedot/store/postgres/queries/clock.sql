-- name: now
SELECT {now} AS now;
