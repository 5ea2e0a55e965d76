"""Bugs of the engine with work that outlives its node: killed, begun again, forgotten."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_MONITOR = "onthedot.engine.running.monitor:Monitor"
_DISPATCHER = "onthedot.engine.claiming.dispatcher:Dispatcher"
_CALL = "onthedot.engine.running.call:call_of"
_MAY_CREATE = "onthedot.engine.running.call:_may_create"
_UNSEEN = "the tests ask for it exactly; work of the simulation that outlives its node is one job in nine"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    named = tuple(f"tests/engine/test_outlives.py::{test}" for test in tests)
    return code(f"outlives: {name}", what, where, part, instead, tests=named, unseen=_UNSEEN)


BUGS = (
    _bug(
        "a cancel only lets go",
        "the run is recorded as cancelled, and its work goes on",
        f"{_MONITOR}._stop_call",
        "ask_to_stop(handle, self.cause)",
        'ask_to_stop(handle, "interrupted")',
        "test_a_cancel_kills_it",
    ),
    _bug(
        "a stop kills",
        "a node that stops in order ends what another could have gone on with",
        f"{_MONITOR}._stop_call",
        "ask_to_stop(handle, self.cause)",
        'ask_to_stop(handle, "cancelled")',
        "test_a_stop_detaches_it_at_once_and_counts_nothing",
    ),
    _bug(
        "given back",
        "a node that stops puts it back to pending: its lane is free, and its job can take it away",
        f"{_MONITOR}._end",
        "elif self.goes_on:",
        "elif False:",
        "test_a_stop_detaches_it_at_once_and_counts_nothing",
    ),
    _bug(
        "recorded as interrupted",
        "letting go of it counts as an attempt that was interrupted",
        f"{_MONITOR}._outcome_of_stop",
        " or self.goes_on",
        "",
        "test_a_stop_detaches_it_at_once_and_counts_nothing",
    ),
    _bug(
        "waits for the grace",
        "a node that stops keeps what it could hand over",
        f"{_DISPATCHER}.detach_all",
        "if monitor.survives and monitor.cause is None:",
        "if False:",
        "test_a_stop_detaches_it_at_once_and_counts_nothing",
    ),
    _bug(
        "orders are forgotten",
        "what was cancelled while nobody had it goes on with who adopts it",
        f"{_DISPATCHER}._obey",
        "and monitor.cause is None:",
        "and monitor.cause is None and monitor.run.work is None:",
        "test_a_cancel_while_nobody_has_it_waits_for_who_adopts_it",
    ),
    _bug(
        "cancelled without a kill",
        "an order that comes before the adopted work is looked for is only recorded",
        f"{_MONITOR}.stop",
        "if self.run.work is None:",
        "if True:",
        "test_a_cancel_while_nobody_has_it_waits_for_who_adopts_it",
    ),
    _bug(
        "adoption is a new try",
        "who adopts it looks for another name, and begins it once more",
        _CALL,
        "try_number=run.tries + 1",
        "try_number=run.tries + 1 + (run.work is not None)",
        "test_adopted_it_is_the_same_try_and_as_old_as_it_is",
    ),
    _bug(
        "at most once begun twice",
        "who adopts it and finds nothing begins it",
        _MAY_CREATE,
        'spec.policy.delivery == "at_most_once" or run.version',
        "run.version",
        "test_at_most_once_it_is_not_created_by_the_next",
    ),
    _bug(
        "begun after a delete",
        "who adopts it and finds nothing begins it, though its job is gone",
        _MAY_CREATE,
        "or run.version == NO_JOB",
        "",
        "test_after_its_job_was_deleted_it_is_not_created_by_the_next",
    ),
    _bug(
        "begun with the old target",
        "who adopts it and finds nothing begins what the job was before it was changed",
        _MAY_CREATE,
        " or work.outdated",
        "",
        "test_after_its_target_was_changed_the_new_one_is_begun",
    ),
    _bug(
        "begun after a pause",
        "who adopts it and finds nothing begins it, though its job is paused",
        _MAY_CREATE,
        'not spec.paused or run.kind == "manual"',
        "True",
        "test_while_its_job_is_paused_it_is_not_created_by_the_next",
    ),
    _bug(
        "time-out from the adoption",
        "with each node it may take as long again",
        f"{_MONITOR}.begins",
        "if at != self.began:",
        "if at != self.began and run.work is None:",
        "test_a_time_out_counts_from_the_true_start",
    ),
    _bug(
        "killed without a lease",
        "a node that lost touch with the store kills what another may have adopted",
        f"{_MONITOR}._expired",
        "self._context.lease.left() <= 0",
        "False",
        "test_who_lost_touch_with_the_store_does_not_kill_it_by_its_own_time_out",
    ),
    _bug(
        "stopped by the end of the lease",
        "a run with a lane is let go of though it can't run twice",
        f"{_MONITOR}.lose_lease",
        " and not self.goes_on",
        "",
        "test_the_end_of_the_lease_does_not_stop_it_though_it_has_a_lane",
    ),
    _bug(
        "not recorded first",
        "its work is begun before the store knows of it: if the node dies, it is begun once more",
        f"{_DISPATCHER}._launch",
        "kind.profile.survives_node",
        "False",
        "test_three_lost_nodes_are_no_poison",
    ),
    _bug(
        "a lost adoption is given back",
        "what was adopted without an answer goes back to pending",
        f"{_DISPATCHER}._compare",
        "if self._context.targets.surviving:",
        "if False:",
        "test_what_was_adopted_without_an_answer_is_open_again_not_pending",
    ),
    _bug(
        "expires",
        "what has begun long ago is skipped as too late by who adopts it",
        "onthedot.model.run:ClaimedRun.begun_before",
        "bool(self.tries or self.losses) or self.work is not None",
        "bool(self.tries or self.losses)",
        "test_it_does_not_expire_while_it_goes_on",
    ),
)
