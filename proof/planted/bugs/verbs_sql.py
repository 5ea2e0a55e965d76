"""Every clause of the statements behind users' verbs, and of those about nodes."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import sql

__all__ = ["BUGS"]

_KILLS = ("kill", "kill_at")
_FREEZES = ("freeze", "freeze_at")

BUGS = (
    sql(
        "cancel: no order",
        "a run that a node has is not cancelled",
        "order_cancel",
        "SET orders = 'cancel'",
        "SET orders = orders",
        focus=Focus(mood="slow", verbs=("cancel",)),
    ),
    sql(
        "recall: instead of cancel",
        "an edit makes a cancel undone",
        "recall_runs",
        "AND orders IS NULL",
        "",
        focus=Focus(mood="slow", verbs=("cancel_edit",)),
    ),
    sql(
        "pause: by hand too",
        "a run by hand waits for the resume",
        "park_runs",
        "AND kind <> 'manual' ",
        "",
        focus=Focus(verbs=("pause", "run")),
    ),
    sql(
        "pause: due runs at resume",
        "the instant to go on at is forgotten",
        "park_runs",
        "resume_at = CASE WHEN parked IS NULL THEN ready_at ELSE due_at END",
        "resume_at = 9000000000000000000",
        focus=Focus(retry={"attempts": 4, "backoff": 1000}, mood="bad", verbs=("pause",)),
    ),
    sql(
        "resume: nothing goes on",
        "parked retries stay parked",
        "release_runs",
        "parked IN ('paused', 'quarantined')",
        "0",
        focus=Focus(retry={"attempts": 4, "backoff": 1000}, mood="bad", verbs=("pause",)),
    ),
    sql(
        "resume: lanes too",
        "who waits for a lane is let go by a resume",
        "release_runs",
        "parked IN ('paused', 'quarantined')",
        "parked IS NOT NULL",
        tests=("tests/store/test_lanes.py", "tests/store/test_pause_resume.py"),
        unseen="those let go too soon are parked again by their claim",
    ),
    sql(
        "edit: old cursor stays",
        "the old schedule's next run fires, too",
        "drop_cursor",
        "AND cursor",
        "AND 0",
        focus=Focus(verbs=("edit",)),
    ),
    sql(
        "delete: no row",
        "what waited when its job was deleted leaves no row",
        "cancel_pending",
        "AND state = 'pending'",
        "AND 0",
        focus=Focus(verbs=("delete",)),
    ),
    sql(
        "delete: runs stay",
        "what waited when its job was deleted is still there",
        "drop_pending",
        "AND state = 'pending'",
        "AND 0",
        focus=Focus(verbs=("delete",)),
    ),
    sql(
        "resume: range without its end",
        "the slots of a pause are one slot",
        "insert_skipped",
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6,",
        "VALUES (?1, ?2, ?3, ?4, ?4, ?6,",
        focus=Focus(verbs=("pause",)),
    ),
    sql(
        "backfill: what is done again",
        "slots that were done are filled in again",
        "slots_taken",
        "AND kind <> 'manual' AND status = 'done'",
        "AND 0",
        focus=Focus(verbs=("backfill",)),
    ),
    sql(
        "redrive: twice",
        "a dead letter can be driven again and again",
        "delete_dead",
        "WHERE run_id IN",
        "WHERE 0 AND run_id IN",
        focus=Focus(mood="bad", verbs=("redrive",)),
    ),
    sql(
        "redrive: of another job",
        "all dead letters are driven, not those asked for",
        "where.dead_job",
        "d.job_id = ?1",
        "?1 = ?1",
        focus=Focus(mood="bad", verbs=("redrive",)),
    ),
    sql(
        "target: old one kept",
        "waiting runs keep asking for the old kind of node",
        "refit_runs",
        "SET requires = ?2,",
        "SET requires = requires,",
        tests=("tests/store/test_update_job.py",),
        unseen="all targets of the simulation are webhooks",
    ),
    sql(
        "declare_lost: whatever its beat",
        "a node that beats is declared lost",
        "declare_lost",
        "AND beat = ?2 ",
        "",
        faults=("slow", "late", "freeze"),
    ),
    sql(
        "beat: a lost node lives again",
        "a node that was declared lost goes on",
        "beat",
        "lost_at IS NULL",
        "1",
        faults=(*_FREEZES, "cut"),
    ),
    sql(
        "orphans: of everybody",
        "the runs of live nodes are taken back",
        "orphans",
        "AND n.lost_at IS NULL)",
        "AND 0)",
        faults=_KILLS,
    ),
    sql(
        "orphans: of known nodes only",
        "the runs of a node whose row is gone are nobody's",
        "orphans",
        "AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = r.node AND n.lost_at IS NULL)",
        "AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = r.node AND n.lost_at IS NOT NULL)",
        faults=("stop", "stop_cut"),
    ),
    sql(
        "held_by: nothing",
        "a node never learns what else carries its name",
        "held_by",
        "AND state = 'running'",
        "AND 0",
        faults=("flaky", "hang"),
    ),
)
