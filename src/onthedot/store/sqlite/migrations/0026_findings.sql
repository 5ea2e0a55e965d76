-- breaking: no
-- What the node that holds the duty has computed about each tenant's jobs, to be read as it is: the proof, the forecast.

CREATE TABLE findings (
    name   TEXT NOT NULL,
    tenant INTEGER NOT NULL,  -- 0: what is said of all of them
    found  TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (name, tenant)
);
