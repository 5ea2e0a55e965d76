"""Bugs of what a killed node leaves behind: its commands go on, or others are killed in their place."""

from __future__ import annotations

from proof.planted.plant import Bug, code

__all__ = ["BUGS"]

_GUARD = "onthedot.targets.process.group_guard"
_PROCESS = "onthedot.targets.process.guard_process"
_TESTS = "tests/targets/test_group_guard.py"
_UNSEEN = "the simulation runs no commands"


def _bug(name: str, what: str, where: str, part: str, instead: str, *tests: str) -> Bug:
    return code(f"commands: {name}", what, where, part, instead, tests=tests, unseen=_UNSEEN)


BUGS = (
    _bug(
        "outlive their node",
        "a command whose node was killed runs beside the repeated attempt",
        "onthedot.targets.command.kind:Commands.send",
        "self._guard.add(process.pid)",
        "pass",
        f"{_TESTS}::test_a_guard_hears_of_each_command",
    ),
    _bug(
        "are told of for ever",
        "what a command that is over left running is killed with the node",
        f"{_GUARD}:GroupGuard.remove",
        "self._groups.pop(leader, None) is not None",
        "False",
        f"{_TESTS}::test_what_is_over_is_left_alone_and_the_guard_ends_with_the_node",
    ),
    _bug(
        "a new guard knows nothing",
        "after the guard was killed, what ran before outlives the node",
        f"{_GUARD}:GroupGuard.start",
        "self._groups.items()",
        "()",
        f"{_TESTS}::test_a_guard_that_was_killed_is_replaced_by_one_that_knows_what_runs",
    ),
    _bug(
        "another process is killed",
        "the number of a group that is over was given to another process",
        f"{_PROCESS}:end",
        "start_time(leader) not in (started, UNKNOWN)",
        "False",
        f"{_TESTS}::test_a_number_that_was_given_to_another_process_is_spared",
    ),
    _bug(
        "notes that are lost",
        "what a full pipe does not take is never told",
        f"{_GUARD}:_RunningGuard.tell",
        "if self._unsent:",
        "if self._unsent.clear():",
        f"{_TESTS}::test_a_guard_that_does_not_read_holds_up_nothing_and_misses_nothing",
    ),
)
