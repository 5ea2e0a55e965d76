-- breaking: no
-- Where an API node listens, and whether its API may be reached without a key as far as that node is concerned (loopback,
-- AUTH not "keys"). Nodes of an older version say nothing: those asked for a key wherever others could reach them.
ALTER TABLE nodes ADD COLUMN binding TEXT;
ALTER TABLE nodes ADD COLUMN exposed INTEGER;

-- Who is logged in to the pages. Only the hash of the cookie is here, and it is not the key.
CREATE TABLE sessions (
    hashed     TEXT PRIMARY KEY,
    key_id     INTEGER NOT NULL REFERENCES api_keys (id),
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
);
CREATE INDEX sessions_of_key ON sessions (key_id);
