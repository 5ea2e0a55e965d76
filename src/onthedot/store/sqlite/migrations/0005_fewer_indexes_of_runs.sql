-- breaking: no
-- Four entries in indexes for each new run instead of six. A job's runs are found by the key, which begins with the
-- job's id. Cursors that are due at their slot (all without jitter) are in one index, for the list of jobs by their next
-- run and for the list of runs; the other pending runs are in another, and only cursors with jitter stand in two.
--
-- A node of the release before goes on working beside this one, but what it reads of single jobs and its lists have lost
-- their indexes: with very many runs they are slow there until that node is upgraded. Claims and finishes are not.

DROP INDEX runs_next;
DROP INDEX runs_listed;
DROP INDEX runs_of_job;
CREATE INDEX runs_next ON runs (tenant, slot, id) WHERE cursor AND parked IS NULL AND due_at = slot;
CREATE INDEX runs_jittered ON runs (tenant, due_at, id) WHERE cursor AND parked IS NULL AND due_at <> slot;
CREATE INDEX runs_listed ON runs (tenant, slot, id)
    WHERE state = 'pending' AND NOT (cursor AND parked IS NULL AND due_at = slot);
