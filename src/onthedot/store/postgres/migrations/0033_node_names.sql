-- breaking: no
-- How far the clock of a node is from the database's, as it says with its beat. And names of nodes for as long as runs
-- refer to them: the row in `nodes` goes with its process. A node of the release before writes neither.
ALTER TABLE nodes ADD COLUMN clock_skew_ms bigint;

CREATE TABLE node_names (
    id      text COLLATE "C" PRIMARY KEY,
    name    text NOT NULL,
    seen_at bigint NOT NULL  -- its last beat, to the hour
);
CREATE INDEX node_names_age ON node_names (seen_at);
