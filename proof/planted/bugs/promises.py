"""Promises that were broken once, put back as they were: each was found from outside, with the proof green."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, Sql, Swap, code

__all__ = ["BUGS"]

_MONITOR = "onthedot.engine.running.monitor:Monitor"

BUGS = (
    code(
        "promise: a cancelled slot raises the floor",
        "a job whose far next run was cancelled, then set to every second, is silent until that slot",
        "onthedot.plan.cursor:_new_times",
        "slot = free(times, taken).next_after(now)",
        "slot = free(times, taken).next_after(newest(claimed, now))",
        focus=Focus(schedule={"cron": "0 0 1 1 *"}, verbs=("cancel_edit",)),
    ),
    code(
        "promise: a clock that was ahead raises the floor",
        "jobs claimed while the database's clock was ahead are silent until then",
        "onthedot.plan.ahead:floor_ahead",
        "return job.claimed_slot is not None and job.claimed_slot > now + lookahead + SLACK_MS",
        "return False",
        tests=("tests/unit/plan/test_ahead.py", "tests/store/test_floors.py"),
        unseen="the simulation's clock is set by 20 s at the most",
    ),
    Bug(
        name="promise: expiry asked at the claim only",
        what="a run that was held, or waited for the database, is sent after its expires_in",
        edits=(
            Code(f"{_MONITOR}.is_unwanted_at", "self.run.spec.policy.expires_in is not None and", "False and"),
            Code(
                "onthedot.engine.running.run_context:RunContext.too_late",
                "if policy.expires_in is None or",
                "if True or policy.expires_in is None or",
            ),
        ),
        faults=("outage", "freeze", "cut"),
        focus=Focus(policy={"expires_in": 1500}),
    ),
    Bug(
        name="promise: begun and not told is not recalled",
        what="the answer to begin is lost, the job deleted, and the run is sent half a minute later",
        edits=(
            Sql("recall_runs", "AND orders IS NULL", "AND orders IS NULL AND begun_at IS NULL"),
            Sql("begin_runs", "AND runs.orders IS NULL", "AND (runs.orders IS NULL OR begun_at IS NOT NULL)"),
        ),
        tests=("tests/store/test_delete_job.py::test_begin_asked_again_after_a_delete_says_no[sqlite]",),
        unseen="it takes a lost answer and a delete within the same second",
    ),
    Bug(
        name="promise: an old answer allows the send",
        what="a node frozen with the answer to begin in its socket sends after a pause was acknowledged",
        edits=(Swap("onthedot.engine.running.begin_gate:BEGIN_VALID", 1e9),),
        tests=(
            "tests/engine/test_begin_gate.py",
            "tests/engine/test_small_parts.py",
            "tests/engine/test_node_faults.py",
        ),
        unseen="orders are read before anything starts after a freeze: both would have to fail",
    ),
    code(
        "promise: replaced is cancelled by a user",
        "the ledger does not say that a newer run took its place",
        "onthedot.plan.outcome:on_outcome",
        'reason = "replaced" if "replaced_by" in outcome.detail else None',
        "reason = None",
        focus=Focus(policy={"overlap": "replace"}, mood="slow"),
    ),
    code(
        "promise: no row for what came due before a delete",
        "slots between the cursor and the delete are nowhere",
        "onthedot.plan.cursor:on_delete",
        "if cursor_slot is None or cursor_slot >= now or job.spec.schedule.one_off:",
        "if True:",
        faults=("outage", "power_cut"),
        focus=Focus(verbs=("delete",)),
    ),
    code(
        "promise: the lease ends, runs go on",
        "a run that may not overlap goes on at a node that was cut off, and at the one that took over",
        "onthedot.engine.membership.lease_end:LeaseEnd.step",
        "self._dispatcher.merge(LEASE_ENDED)",
        "pass",
        times=2,
        faults=("cut", "outage"),
        tests=("tests/engine/test_lease_end.py",),
        unseen="calls of the simulation end within a lease",
    ),
    Bug(
        name="promise: no descriptors is a try",
        what="a node without descriptors uses up the tries of what it can't send",
        edits=(Swap("onthedot.targets.exhaustion:_LACKS", {}),),
        tests=("tests/targets/test_exhaustion.py", "tests/engine/test_short.py"),
        unseen="the simulated receiver needs no descriptor",
    ),
    code(
        "promise: a dead one-off stays dead",
        "a one-off that failed for good is not fired again when it is changed",
        "onthedot.plan.cursor:_revived",
        "if cursor_slot is None and dead:",
        "if False:",
        tests=("tests/store/test_revive_dead.py",),
        unseen="one-offs of the simulation are changed before they end",
    ),
    code(
        "promise: a request whose client has gone",
        "a verb is carried out though nobody waits for its answer",
        "onthedot.api.http.client_connection:hung_up",
        "if transport.is_closing():",
        "return False\n    if transport.is_closing():",
        tests=("tests/api/test_client_connection.py",),
        unseen="the simulation has no HTTP; chaos does (`unasked`)",
    ),
)
