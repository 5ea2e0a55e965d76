-- breaking: no
-- Labels of a node, which jobs may require. A run that requires some names them beside what its target needs, so that a
-- node of the release before does not claim it.

ALTER TABLE nodes ADD COLUMN labels text;
