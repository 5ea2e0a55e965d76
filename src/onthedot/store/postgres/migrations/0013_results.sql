-- breaking: no
-- Results of runs that are too large for their outcome, what a run that goes on outside says of its progress, and what
-- all nodes of an installation share: the secret that callbacks are signed with. A node of the release before leaves all
-- of this alone; a run that waits for its callback is to it a running one that no node has.

ALTER TABLE history ADD COLUMN result text;
ALTER TABLE runs ADD COLUMN progress text;

CREATE TABLE installation (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);
