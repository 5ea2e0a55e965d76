-- breaking: no
-- Runs that wait for a destination (`waiting`, since when, and when they expire meanwhile): what such a run requires names
-- the destination, so that a node of the release before does not claim it. And what each node says of its destinations.

ALTER TABLE runs ADD COLUMN waiting TEXT;
ALTER TABLE runs ADD COLUMN waiting_since INTEGER;
ALTER TABLE runs ADD COLUMN waiting_until INTEGER;
ALTER TABLE nodes ADD COLUMN destinations TEXT;

CREATE INDEX runs_waiting_until ON runs (waiting_until)
    WHERE waiting_until IS NOT NULL AND state = 'pending' AND parked IS NULL;
