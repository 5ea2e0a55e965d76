-- breaking: no
-- Which history of the database our numbers come from. A file has one, so that its row is never written.

CREATE TABLE lineage (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    system     TEXT NOT NULL,
    timeline   INTEGER NOT NULL,
    previous   TEXT,
    changed_at INTEGER
);
