-- breaking: no
-- Which history of the database our numbers come from. After a failover PostgreSQL is on another timeline and may lack
-- the last moments of the one before: numbers that were given there must not be given again.

CREATE TABLE lineage (
    id         bigint PRIMARY KEY CHECK (id = 1),  -- one row
    system     text NOT NULL,  -- the cluster's identifier, given by initdb
    timeline   bigint NOT NULL,
    previous   text,  -- what it was before, as `system/timeline`
    changed_at bigint
);
