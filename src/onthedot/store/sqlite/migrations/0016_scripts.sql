-- breaking: no
-- Uploaded scripts: who has which. What is in them is in the object store.

CREATE TABLE scripts (
    tenant     INTEGER NOT NULL,
    id         TEXT NOT NULL,  -- sha256:…
    name       TEXT,
    size       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
);
