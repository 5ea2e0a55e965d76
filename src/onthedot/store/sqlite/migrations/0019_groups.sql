-- breaking: no
-- Concurrency groups: which group a run belongs to and how many of it its job allows at once. A run that waits for its
-- group is parked ('group'). Jobs with a group need a node of this release, so one of the release before does not claim
-- them. A lane below zero is none: such runs are claimed like those of a lane, and any number of them may run.

ALTER TABLE runs ADD COLUMN group_key TEXT;
ALTER TABLE runs ADD COLUMN group_limit INTEGER;

CREATE TABLE run_groups (  -- a row to lock on PostgreSQL; here there is one writer, and it stays empty
    group_key TEXT PRIMARY KEY
);

DROP INDEX runs_lane_holder;
CREATE UNIQUE INDEX runs_lane_holder ON runs (lane) WHERE state = 'running' AND lane > 0;
CREATE INDEX runs_of_group ON runs (group_key, group_limit) WHERE group_key IS NOT NULL;
CREATE INDEX runs_in_group ON runs (group_key) WHERE state = 'running' AND group_key IS NOT NULL;
CREATE INDEX runs_wait_for_group ON runs (group_key, due_at, id) WHERE parked = 'group';
CREATE INDEX runs_called ON runs (group_key) WHERE waiting = 'group' AND state = 'pending' AND parked IS NULL;
CREATE INDEX runs_expire_in_group ON runs (waiting_until) WHERE parked = 'group' AND waiting_until IS NOT NULL;
CREATE INDEX runs_in_line ON runs (lane) WHERE waiting = 'group' AND state = 'pending' AND lane > 0;
