-- Moving a store to another database. What is being moved, or was, has a row in `meta` that no version can live with.

-- name: find_mark
SELECT name FROM meta WHERE number = {MOVED_MARK};

-- name: set_mark
INSERT INTO meta (number, name, breaking, applied_at) VALUES ({MOVED_MARK}, ?1, 1, {now})
ON CONFLICT (number) DO UPDATE SET name = excluded.name;

-- name: drop_mark
DELETE FROM meta WHERE number = {MOVED_MARK};

-- name: set_installation_value
INSERT INTO installation (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: drop_installation_value
DELETE FROM installation WHERE name = ?1;

-- name: beating_nodes
-- Who has the file open has its lock: there is nobody else.
SELECT name FROM nodes WHERE 0 AND beat_at > ?1;

-- name: declare_all_lost
UPDATE nodes SET lost_at = {now} WHERE lost_at IS NULL;

-- name: stored_tables
SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name;

-- name: stored_columns
-- In the order of the table; `key`: its place in the primary key, 0 if it is none.
SELECT name, lower(type) AS type, pk AS key FROM pragma_table_info(?1) ORDER BY cid;

-- name: last_numbers
SELECT name, last FROM sequences UNION ALL SELECT name, seq FROM sqlite_sequence;

-- name: raise_sequence
UPDATE sequences SET last = max(last, ?2) WHERE name = ?1;

-- name: raise_identity
-- Its table has a row there as soon as it has one itself; what was deleted since is counted, too.
UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1;
