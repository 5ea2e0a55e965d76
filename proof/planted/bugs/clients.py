"""Clients, clocks and files: what is done for nobody, answered twice, dated by the wrong clock, or shared unseen; and
what users leave out, bring back or pause as a whole."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, Sql, code, sql

__all__ = ["BUGS"]

_NOT_FROZEN = "AND NOT EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL)"
_FILE = "onthedot.store.sqlite.lockfile:DatabaseFile"
_FILE_TESTS = ("tests/store/test_sqlite_driver.py",)
_PROCESSES = "the simulation's database is no file"

BUGS = (
    code(
        "clients: a call is dated by its node",
        "webhook-timestamp goes by the wall clock of the machine: receivers refuse it",
        "onthedot.engine.running.call:call_of",
        "offset_us=offset_us,",
        "",
        shows=("stamp",),
    ),
    code(
        "clients: Retry-After goes by its node",
        "a date that a receiver asks for is compared with the wall clock of the machine",
        "onthedot.targets.webhook.verdict:retry_after_ms",
        "int(moment.timestamp() * 1000) - now_ms",
        'int(moment.timestamp() * 1000) - __import__("time").time_ns() // 1_000_000',
        focus=Focus(mood="dated"),
        shows=("backoff",),
    ),
    code(
        "clients: past before it is known as a repeat",
        "a create is refused because its time has passed, though it was made and only its answer was lost",
        "onthedot.store.jobs.create_group:create_group",
        "elif items[place].idempotency is None and (refusal := past(planned, now)) is not None:",
        "elif (refusal := past(planned, now)) is not None:",
        faults=("flaky", "flaky", "hang"),
        minutes=10.0,
        seeds=(7, 1, 2, 3),
        shows=("two_answers",),
    ),
    Bug(
        name="clients: everything is paused for nobody",
        what="a pause of everything whose client has hung up is carried out",
        edits=(Code("onthedot.store.cluster.freezes:Freezes.freeze", "self.as_asked(", "self.driver.transact_slow("),),
        tests=("tests/store/test_abandoned_requests.py",),
        unseen="one request in thousands; `ghost` sees it",
    ),
    Bug(
        name="freeze: runs are claimed",
        what="while everything is paused, runs whose time comes are claimed",
        edits=(
            Sql("peek", "EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL) AS frozen", "0 AS frozen"),
            Sql("claim_cursors", _NOT_FROZEN, ""),
            Sql("claim_free", _NOT_FROZEN, ""),
        ),
        focus=Focus(verbs=("freeze",)),
    ),
    sql(
        "freeze: what is held is begun",
        "nodes send what they had claimed before everything was paused",
        "news_of",
        "WHERE EXISTS (SELECT 1 FROM freezes WHERE ended_at IS NULL)",
        "WHERE 1 = 0",
        focus=Focus(verbs=("freeze",)),
    ),
    code(
        "freeze: what passed is made up for",
        "slots that came while everything was paused are caught up with",
        "onthedot.plan.claim:on_claim",
        "if thawed_at is not None and slot < min(thawed_at, now):",
        "if False:",
        focus=Focus(verbs=("freeze",)),
    ),
    code(
        "skip: the slot is fired all the same",
        "a slot that was left out has no row, and is claimed",
        "onthedot.store.jobs.skips:_leave_out",
        "if slot == cursor:",
        "if slot != cursor:\n        pass\n    elif True:",
        focus=Focus(verbs=("skip",)),
    ),
    code(
        "skip: does not count",
        "a slot that was left out is not charged to the job's count",
        "onthedot.plan.skip:on_skip",
        "slots_used=job.slots_used + 1",
        "slots_used=job.slots_used",
        focus=Focus(verbs=("skip",), schedule={"count": 12}),
    ),
    code(
        "skip: what is taken back stays out",
        "a slot that was left out and taken back is not fired",
        "onthedot.store.jobs.skips:_take_back",
        "if not change.moved:",
        "if True:",
        focus=Focus(verbs=("skip",)),
    ),
    code(
        "undelete: what passed is nowhere",
        "slots that passed while a job was deleted have no row",
        "onthedot.store.jobs.undelete:_bring_back",
        "await skip_slots(tx, [SkippedSlots.of(job, gap, now) for gap in change.skipped])",
        "pass",
        focus=Focus(verbs=("undelete",)),
    ),
    code(
        "undelete: what passed is made up for",
        "slots that passed while a job was deleted are caught up with",
        "onthedot.plan.undelete:on_undelete",
        'if job.state == "active" and',
        "if False and",
        focus=Focus(verbs=("undelete",)),
    ),
    code(
        "undelete: without its next run",
        "a job that was brought back is silent",
        "onthedot.store.jobs.undelete:_set_cursor",
        "if change.cursor_slot is None:",
        "if True:",
        focus=Focus(verbs=("undelete",)),
    ),
    sql(
        "undelete: what ended meanwhile does not count",
        "statistics lack the runs that ended while the job was deleted",
        "add_stats",
        "WHERE j.id IS NOT NULL OR d.id IS NOT NULL",
        "WHERE j.id IS NOT NULL",
        focus=Focus(verbs=("undelete",)),
    ),
    code(
        "undelete: tokens begin anew",
        "the run that was next gets a token that was given before",
        "onthedot.store.jobs.undelete:_set_cursor",
        "if token:",
        "if False:",
        tests=("tests/store/test_undelete.py",),
        unseen="a node must have held the run ahead and given it back",
    ),
    code(
        "file: the name is locked, not the file",
        "two processes that come by different names work on one database",
        f"{_FILE}._lock_itself",
        "if not _lock_file(self._descriptor):",
        "if False:",
        tests=_FILE_TESTS,
        unseen=_PROCESSES,
    ),
    code(
        "file: replaced unnoticed",
        "what is written after the file was replaced is lost, and nobody is told",
        f"{_FILE}.check",
        "if self.moved is None:",
        "if False:",
        tests=_FILE_TESTS,
        unseen=_PROCESSES,
    ),
)
