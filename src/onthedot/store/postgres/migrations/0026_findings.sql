-- breaking: no
-- What the node that holds the duty has computed about each tenant's jobs, to be read as it is: the proof, the forecast.

CREATE TABLE findings (
    name   text COLLATE "C" NOT NULL,
    tenant bigint NOT NULL,  -- 0: what is said of all of them
    found  text NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (name, tenant)
);
