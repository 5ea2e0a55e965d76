-- breaking: no
-- Runs whose work goes on without a node (`open`, until when, and what was started), runs whose end causes something
-- elsewhere (`noted`), and chains of them (`depth`). A node of the release before leaves all of this alone: an open run is
-- a running one that no node has.

ALTER TABLE runs ADD COLUMN work text;
ALTER TABLE runs ADD COLUMN open text;
ALTER TABLE runs ADD COLUMN open_until bigint;
ALTER TABLE runs ADD COLUMN noted boolean;
ALTER TABLE runs ADD COLUMN depth bigint;

CREATE INDEX runs_adoptable ON runs (requires) WHERE open = 'adopt';
CREATE INDEX runs_overdue ON runs (open_until) WHERE open IS NOT NULL;
CREATE INDEX runs_open ON runs (tenant, slot, id) WHERE open IS NOT NULL;
