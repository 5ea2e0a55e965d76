-- breaking: no
-- Jobs whose last run failed or was late, for lists of them. Written when a run ends so, never when one ends well: whether
-- it is still so is for job_stats to say, and the rows that are over are taken away now and then. So job_stats needs no
-- index on what each finish changes, and the good case writes nothing here.
CREATE TABLE noticed_jobs (
    tenant     bigint NOT NULL,
    what       text COLLATE "C" NOT NULL,  -- 'failing' | 'late'
    job_id     bigint NOT NULL,
    noticed_at bigint NOT NULL,
    PRIMARY KEY (tenant, what, job_id)
);
INSERT INTO noticed_jobs (tenant, what, job_id, noticed_at)
SELECT tenant, 'failing', job_id, 0 FROM job_stats WHERE last_status = 'failed'
UNION SELECT tenant, 'late', job_id, 0 FROM job_stats WHERE last_lateness_ms > 1000
UNION SELECT tenant, 'failing', job_id, 0 FROM dead_letters;
