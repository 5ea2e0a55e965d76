-- What all nodes of an installation share.

-- name: installation_value
SELECT value FROM installation WHERE name = $1;

-- name: add_installation_value
-- Who comes second finds what the first has written.
INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING;
