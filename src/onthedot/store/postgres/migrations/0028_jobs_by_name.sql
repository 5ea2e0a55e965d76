-- breaking: no
-- Jobs by what they are called, for lists in that order. One-off jobs without name and key are not in it.
CREATE INDEX jobs_by_title ON jobs (tenant, (coalesce(name_search, key_search)), id) WHERE coalesce(name_search, key_search) IS NOT NULL;
