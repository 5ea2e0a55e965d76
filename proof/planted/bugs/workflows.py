"""Bugs of workflows: started twice, taken from others, stopped with the node, or never stopped."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_RUN = "onthedot.targets.workflow.run:WorkflowRun"
_TESTS = "tests/targets/test_workflows.py"
_UNSEEN = "the simulation has no workflow engine"


def _bug(name: str, what: str, where: str, part: str, instead: str, test: str) -> Bug:
    return code(f"workflow: {name}", what, where, part, instead, tests=(f"{_TESTS}::{test}",), unseen=_UNSEEN)


BUGS = (
    _bug(
        "a name of its own for each attempt",
        "a node that adopts a run does not find its execution, and starts another",
        "onthedot.targets.workflow.run:new_execution",
        "{call.try_number}",
        "{call.try_number}-{id(call)}",
        "test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on",
    ),
    _bug(
        "stopped when the node stops",
        "an orderly stop of a node ends the executions that the next one should adopt",
        f"{_RUN}.carry_out",
        "if self._call.stopped in _KILLS and",
        "if self._call.stopped is not None and",
        "test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on",
    ),
    _bug(
        "whoever has the name is ours",
        "the execution of another installation is followed as if it were the run's",
        "onthedot.targets.workflow.run:mark_of",
        'f"{installation}/{name}"',
        "name",
        "test_one_of_another_installation_is_not_ours",
    ),
    _bug(
        "what is gone is started again",
        "an at-most-once run whose execution is gone runs a second time",
        f"{_RUN}._ask_once",
        "if not call.may_create:",
        "if False:",
        "test_one_that_is_gone_is_unknown_where_it_must_not_run_twice",
    ),
    _bug(
        "a stop is given up before anybody says so",
        "an execution that was not stopped goes on, and the run says that it was stopped",
        f"{_RUN}._stop",
        "STOP_WITHIN + STOP_AGAIN_FOR",
        "STOP_WITHIN",
        "test_who_gave_up_waiting_for_a_stop_says_so_and_it_is_asked_for_all_the_same",
    ),
    _bug(
        "a lost answer is a failure",
        "an execution whose start was not answered runs on, beside that of the next try",
        f"{_RUN}._found_or_started",
        "except EngineDown as down:",
        "except ZeroDivisionError as down:",
        "test_a_start_whose_answer_is_lost_is_found",
    ),
    _bug(
        "a retry forgets the try before",
        "what is left of a try that timed out runs beside the next one",
        f"{_RUN}._ask_once",
        "await self._stop_previous(new)",
        "pass",
        "test_a_retry_stops_what_is_left_of_the_try_before",
    ),
    _bug(
        "a login that is refused ends what goes on",
        "a node without a valid login fails the runs that it adopts, whose executions go on",
        f"{_RUN}._seen",
        "except Exception as error:",
        "except ZeroDivisionError as error:",
        "test_an_adopted_one_is_not_over_because_nobody_may_ask",
    ),
    _bug(
        "who is refused looks at nothing more",
        "one execution that the login may not see keeps the ends of all others from being noticed",
        "onthedot.targets.workflow.following:EndWatch._look",
        "except Exception as error:",
        "except ZeroDivisionError as error:",
        "test_one_that_nobody_may_ask_about_does_not_hold_up_the_others",
    ),
    _bug(
        "only what was used is compared",
        "the executions that a dead node left behind go on until their workflow is used again",
        "onthedot.targets.workflow.airflow:Airflow.lists",
        "(_ALL,)",
        "()",
        "test_what_a_dead_node_left_behind_is_found_by_who_never_used_the_workflow",
    ),
)
