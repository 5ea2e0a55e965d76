"""Locks and fences of PostgreSQL's statements, which SQLite has no need of: found by the tests of the stores."""

from __future__ import annotations

from proof.planted.plant import Bug, Code, Sql

__all__ = ["BUGS"]

_UNSEEN = "the simulation runs on SQLite, which has one writer and no locks"


def _only_here(name: str, what: str, statement: str, part: str, instead: str, *tests: str) -> Bug:
    return Bug(
        name=f"postgres: {name}",
        what=what,
        edits=(Sql(statement, part, instead, dialect="postgres"),),
        tests=tuple(f"tests/store/{test}.py" for test in tests),
        unseen=_UNSEEN,
    )


_FROZEN = "test_postgres_frozen"

BUGS = (
    _only_here(
        "everybody takes back runs",
        "all nodes write the runs of a lost one, and wait for each other",
        "take_reclaim_turn",
        " WHERE pg_try_advisory_xact_lock(hashtextextended('reclaim', 'runs'::regclass::oid::bigint))",
        "",
        _FROZEN,
    ),
    _only_here(
        "nobody ends the transactions of a lost node",
        "what a frozen node has locked inside COPY stays locked",
        "end_transactions_of",
        "n.lost_at IS NULL",
        "n.lost_at IS NOT NULL",
        _FROZEN,
    ),
    _only_here(
        "transactions of a live node are ended",
        "a node whose beat went on loses its connections",
        "end_transactions_of",
        "AND n.beat = $2",
        "AND $2::bigint IS NOT NULL",
        _FROZEN,
    ),
    Bug(
        name="postgres: a hang-up is not noticed",
        what="what a node gave up waits on in the server, with its locks",
        edits=(Code("onthedot.store.postgres.limits:_notice_hang_up", "HUNG_UP", "0"),),
        tests=(f"tests/store/{_FROZEN}.py",),
        unseen=_UNSEEN,
    ),
    _only_here(
        "adopted without a lock",
        "two nodes adopt one run",
        "adopt_runs",
        "FOR UPDATE SKIP LOCKED",
        "",
        "test_interleavings",
    ),
    _only_here(
        "the claim does not lock the job",
        "an edit that waits for a claim makes a second cursor",
        "claim_cursors",
        " FOR NO KEY UPDATE OF j SKIP LOCKED",
        "",
        "test_interleavings",
        "test_concurrent_verbs",
    ),
    _only_here(
        "the claim waits",
        "a claim waits for whoever holds a run",
        "claim_free",
        "SKIP LOCKED",
        "",
        "test_interleavings",
        "test_claim",
    ),
    _only_here(
        "a verb does not lock the job",
        "two verbs on one job go on side by side",
        "lock_job",
        " FOR UPDATE",
        "",
        "test_interleavings",
        "test_concurrent_verbs",
    ),
    _only_here(
        "finish of any token",
        "an old attempt's good answer is recorded",
        "finish_done",
        "AND r.token = x.token ",
        "",
        "test_finish",
    ),
    _only_here(
        "finish of any node",
        "another node's failure is recorded",
        "finish_record",
        " AND coalesce(r.node, r.open) = x.node",
        "",
        "test_finish",
    ),
    _only_here(
        "begin of any token",
        "an old owner may send",
        "begin_runs",
        "AND r.token = x.token ",
        "",
        "test_finish",
        "test_orders",
    ),
    _only_here(
        "begin against orders",
        "what was recalled is sent",
        "begin_runs",
        " AND r.orders IS NULL",
        "",
        "test_finish",
        "test_orders",
    ),
    _only_here(
        "a retry at once",
        "a retry does not wait",
        "finish_retry",
        "ELSE greatest(x.ready_at,",
        "ELSE least(x.ready_at,",
        "test_finish",
    ),
    Bug(
        name="postgres: begun and not told is not recalled",
        what="the answer to begin is lost, the job deleted or paused, and the run is sent half a minute later",
        edits=(
            Sql("recall_runs", "AND orders IS NULL", "AND orders IS NULL AND begun_at IS NULL", dialect="postgres"),
            Sql(
                "begin_runs",
                "AND r.orders IS NULL",
                "AND (r.orders IS NULL OR r.begun_at IS NOT NULL)",
                dialect="postgres",
            ),
        ),
        tests=("tests/store/test_delete_job.py", "tests/store/test_pause_resume.py"),
        unseen=_UNSEEN,
    ),
    Bug(
        name="postgres: no gap after a failover",
        what="a new job gets the number of one that was acknowledged and lost with the old primary",
        edits=(
            Code(
                "onthedot.store.postgres.lineage:_noted",
                "await connection.fetch(_LEAVE_GAP, GAP)",
                "pass",
            ),
        ),
        tests=("tests/store/test_postgres_failover.py",),
        unseen="the simulation's database has no standby; chaos has (`reused`)",
    ),
    Bug(
        name="postgres: a failover is not told",
        what="at-most-once runs may have been sent twice, and nobody says so",
        edits=(Code("onthedot.store.postgres.lineage:Lineage.check", "if before is not None:", "if False:"),),
        tests=("tests/store/test_postgres_failover.py",),
        unseen="the simulation's database has no standby",
    ),
    Bug(
        name="postgres: a frozen host hides the next",
        what="of several hosts, a first one that accepts and never answers is waited for",
        edits=(
            Code(
                "onthedot.store.postgres.connecting:PostgresConnector.connect",
                "await self._first(asked, failed, SILENT)",
                "await self._first(asked, failed, None)",
            ),
        ),
        tests=("tests/store/test_postgres_connecting.py",),
        unseen="the simulation's database has one address, and no network",
    ),
)
