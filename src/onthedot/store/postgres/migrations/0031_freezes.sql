-- breaking: no
-- When the whole installation was paused, why and by whom; ended_at NULL: it is now.
CREATE TABLE freezes (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    began_at bigint NOT NULL,
    ended_at bigint,
    note     text,
    actor    text
);
CREATE UNIQUE INDEX freezes_open ON freezes ((ended_at IS NULL)) WHERE ended_at IS NULL;

-- What was asked for by hand runs all the same: it is found among all that waits.
CREATE INDEX runs_manual ON runs (requires, ready_at) WHERE state = 'pending' AND kind = 'manual';
