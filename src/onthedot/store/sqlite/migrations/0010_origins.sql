-- breaking: no
-- Which file a job was last loaded from, where the source is only the name of a file, which another one may have, too.

ALTER TABLE jobs ADD COLUMN origin TEXT;
