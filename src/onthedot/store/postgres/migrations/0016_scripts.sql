-- breaking: no
-- Uploaded scripts: who has which. What is in them is in the object store.

CREATE TABLE scripts (
    tenant     bigint NOT NULL,
    id         text COLLATE "C" NOT NULL,  -- sha256:…
    name       text,
    size       bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, id)
);
