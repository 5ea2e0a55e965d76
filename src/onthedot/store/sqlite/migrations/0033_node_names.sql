-- breaking: no
-- How far the clock of a node is from the database's, as it says with its beat. And names of nodes for as long as runs
-- refer to them: the row in `nodes` goes with its process. A node of the release before writes neither.
ALTER TABLE nodes ADD COLUMN clock_skew_ms INTEGER;

CREATE TABLE node_names (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    seen_at INTEGER NOT NULL  -- its last beat, to the hour
) WITHOUT ROWID;
CREATE INDEX node_names_age ON node_names (seen_at);
