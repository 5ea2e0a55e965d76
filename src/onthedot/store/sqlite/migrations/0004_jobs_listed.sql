-- breaking: no
-- One index for every list of jobs instead of four, which each new job and each that ended had to be written into. The
-- few combinations of state, target and schedule that a tenant has are found by skipping through it, and their newest
-- are merged.

CREATE INDEX jobs_listed ON jobs (tenant, state, target_type, schedule_kind, id);
DROP INDEX jobs_newest;
DROP INDEX jobs_by_state;
DROP INDEX jobs_by_target;
DROP INDEX jobs_by_schedule;
