"""Bugs of the shares of workers: one job or tenant has them all, or what waits for its share is never called."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_ROOM = "onthedot.plan.worker_shares"
_SHARES = "onthedot.engine.running.worker_shares:WorkerShares"
_POOL = "onthedot.targets.function.pool:WorkerPool"
_UNSEEN = "workers are processes of a real node"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    named = tuple(f"tests/engine/test_worker_shares.py::test_{test}" for test in tests)
    return code(f"worker shares: {name}", what, where, part, instead, tests=named, unseen=_UNSEEN)


BUGS = (
    _bug(
        "one job has them all",
        "slow runs of one job make every other function of the node late",
        f"{_ROOM}:room_of_job",
        "workers - kept_free(workers) - busy",
        "workers - busy",
        "one_job_never_has_all_workers_and_another_starts_at_once",
    ),
    _bug(
        "one tenant has them all",
        "slow runs of one tenant make those of others late",
        f"{_ROOM}:room_of_tenant",
        "workers - kept_free(workers) - own",
        "workers - own",
        "a_tenant_leaves_workers_to_others_once_there_are_several",
    ),
    _bug(
        "no half for a job",
        "a job whose neighbours use the other workers is turned away though it has less than half",
        f"{_ROOM}:room_of_job",
        "(workers + 1) // 2 - own",
        "-own",
        "half_of_them_it_has_whoever_has_the_others",
    ),
    _bug(
        "an end is not counted",
        "a job has used up its share for ever",
        f"{_SHARES}.end",
        "counts[key] -= 1",
        "pass",
        "what_has_ended_leaves_its_place_in_the_half",
    ),
    _bug(
        "what waits is not asked for",
        "runs beyond the share wait until their node is started anew",
        f"{_SHARES}.waits",
        "self._waited_for[requires] = share",
        "pass",
        "what_waits_is_claimed_when_its_share_has_room_and_only_then",
    ),
    _bug(
        "asked for without room",
        "what waits is claimed and turned away again and again",
        f"{_SHARES}.wanted",
        "if limit > 0:",
        "if True:",
        "what_waits_is_claimed_when_its_share_has_room_and_only_then",
    ),
    _bug(
        "a place for what waits is taken by what is new",
        "the newest runs of a job always find the free worker first",
        f"{_SHARES}._unless",
        "if room == 1 and (waited or not self._waited_for):",
        "if room == 1:",
        "what_waits_is_claimed_when_its_share_has_room_and_only_then",
    ),
    _bug(
        "a line of one job hides the others",
        "claims bring the runs of the job that has its share, and never those behind them",
        f"{_SHARES}._turns_away",
        "pool.sifted = SHARES_SIFTED",
        "pass",
        "others_behind_a_long_line_of_one_job_are_seen_soon",
    ),
    _bug(
        "brief for ever",
        "a function that was quick and then hangs takes all workers, one run after the other",
        "onthedot.targets.function.pool:WorkerPool.is_brief",
        " and not (self._long and self._hangs(function))",
        "",
        "a_brief_function_that_hangs_takes_no_more_than_its_share[sqlite]",
    ),
    code(
        "worker shares: brief calls have the last worker",
        "calls of a quick function that all hang at once make every other function of the node late",
        f"{_POOL}._has_all_but_one",
        "return self._kept_from == job_id",
        "return False",
        tests=("tests/targets/test_last_worker.py::test_calls_of_one_job_leave_a_worker_to_the_others",),
        unseen=_UNSEEN,
    ),
    code(
        "worker shares: nobody is let by",
        "the worker that is kept for others stays idle while they wait",
        f"{_POOL}._let_by",
        "if asked.call.job_id != job_id:",
        "if False:",
        tests=("tests/targets/test_last_worker.py::test_who_waits_behind_them_is_let_by",),
        unseen=_UNSEEN,
    ),
)
