"""Bugs of Jobs of a cluster: run twice, taken from others, killed by who should let go, or deleted too early."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_RUN = "onthedot.targets.kubernetes.run:KubernetesRun"
_KIND = "onthedot.targets.kubernetes.kind:KubernetesJobs"
_TESTS = "tests/targets/test_kubernetes.py"
_UNSEEN = "the simulation has no cluster"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    named = tuple(f"{_TESTS}::{test}" for test in tests)
    return code(f"kubernetes: {name}", what, where, part, instead, tests=named, unseen=_UNSEEN)


BUGS = (
    _bug(
        "a name of its own for each attempt",
        "a node that adopts a run does not find its Job, and creates another",
        "onthedot.targets.kubernetes.manifest:job_name",
        'name = f"{run_id}-{try_number}"',
        'name = f"{run_id}-{try_number}-{id(object())}"',
        "test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on",
    ),
    _bug(
        "deleted when the node stops",
        "an orderly stop of a node ends the Jobs that the next one should adopt",
        f"{_RUN}._follow",
        "if self._call.stopped not in _KILLS:",
        "if self._call.stopped is None:",
        "test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on",
    ),
    _bug(
        "whoever has the name is ours",
        "the Job of another installation is followed as if it were the run's",
        "onthedot.targets.kubernetes.manifest:is_ours",
        "(installation, call.run_id",
        "(label(INSTALLATION), call.run_id",
        "test_a_job_of_another_installation_is_not_ours",
    ),
    _bug(
        "another cluster says that it is gone",
        "a run is repeated because the address was given to another cluster for a moment",
        "onthedot.targets.kubernetes.link:ClusterLink.is_at",
        "return found == uid",
        "return True",
        "test_what_is_gone_while_another_cluster_answers_is_not_gone",
    ),
    _bug(
        "gone is created again where it may run once only",
        "an at-most-once run whose Job was deleted runs a second time",
        f"{_RUN}._found_or_created",
        "if not call.may_create:",
        "if False:",
        "test_gone_it_is_unknown_where_it_may_run_once_only",
    ),
    _bug(
        "created by who may not begin any more",
        "a node that was frozen creates the Job of a run that is another's",
        f"{_RUN}._found_or_created",
        "if call.stopped is None and not call.may_begin():",
        "if False:",
        "test_who_may_not_begin_any_more_creates_nothing",
    ),
    _bug(
        "ended ones are deleted at once",
        "a node that was frozen before its create finds the name free, and runs the try again",
        f"{_KIND}._may_go",
        "if not job.is_over:",
        "if True:",
        "test_only_what_is_over_for_a_while_is_left_to_be_removed",
    ),
    _bug(
        "a version that is gone is watched for ever",
        "after a compaction nobody hears of any end",
        "onthedot.targets.kubernetes.watch:_ObjectWatch._follow",
        "raise refusal(200, bytes(event.object))",
        "continue",
        "test_cut_watches_go_on_and_one_that_is_too_old_is_listed_again",
    ),
)
