-- breaking: no
-- Who asked for a run: its trigger's actor. Beside the runs, as few have one: claims and records of the others don't carry
-- it, and it stays whichever release finishes the run. A node of the release before writes none.
CREATE TABLE run_actors (
    run_id     text COLLATE "C" PRIMARY KEY,
    actor      text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX run_actors_age ON run_actors (created_at);
