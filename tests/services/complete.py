"""What was collected was run, or the session fails.

pytest-xdist hands out tests by their ids: of tests with equal ids one is run, and nobody says so. So an id that two
tests have is an error, and in the end the ids that ran are compared with those that were collected, in the process that
hands them out as in each that runs them. `--tally FILE` adds a line with the numbers, for who runs the tests in parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Complete"]

SHOWN = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--tally", metavar="FILE", help="add a line: collected, run, marked `alone` and left to another part"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Complete(config), "complete")


class Complete:
    """One in each process. `collected` and `ran` are ids; a worker tells the first process how many it ran."""

    def __init__(self, config: pytest.Config) -> None:
        self._worker = hasattr(config, "workerinput")
        self._shared = bool(config.getoption("numprocesses", None)) and not self._worker
        self._only_listed = bool(config.getoption("collectonly"))
        self._tally: str | None = config.getoption("tally")
        self.collected: list[str] = []
        self.left_alone = 0
        self.ran: Counter[str] = Counter()
        self.by_worker: Counter[str] = Counter()
        self.problems: list[str] = []

    # what there is

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        self.left_alone += sum(item.get_closest_marker("alone") is not None for item in items)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if self._shared:
            return  # what the workers found is told below
        self.collected = [item.nodeid for item in session.items]
        if not self._worker:  # there the process that hands out the tests says it, once
            _refuse_equal(self.collected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.collected = list(ids)
        _refuse_equal(self.collected)

    # what was done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call"):  # each test is torn down once; a worker that died with it leaves "???"
            self.ran[report.nodeid] += 1
            if self._shared and report.when == "teardown":
                self.by_worker[report.node.gateway.id] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        said = getattr(node, "workeroutput", {})  # one that crashed says nothing
        if "ran" in said:
            self.left_alone = said["left_alone"]
            if said["ran"] != (heard := self.by_worker[node.gateway.id]):
                self.problems.append(f"worker {node.gateway.id} ran {said['ran']} tests, reports came of {heard}")

    # the comparison

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._worker:
            session.config.workeroutput.update(  # type: ignore[attr-defined]
                ran=self.ran.total(), left_alone=self.left_alone
            )
            return
        stopped = session.shouldstop or session.shouldfail or self._only_listed
        if stopped or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return
        self._compare()
        if self.problems:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif self._tally:
            with Path(self._tally).open("a") as file:
                file.write(f"{len(self.collected)} {len(self.ran)} {self.left_alone}\n")

    def _compare(self) -> None:
        missing = [test for test in self.collected if not self.ran[test]]
        surplus = [*self.ran.keys() - set(self.collected)]
        twice = [test for test, times in self.ran.items() if times > 1]
        for tests, what in ((missing, "never run"), (surplus, "run, not collected"), (twice, "run more than once")):
            if tests:
                self.problems.append(f"{len(tests)} of {len(self.collected)} collected tests: {what}{_names(tests)}")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.problems:
            terminalreporter.section("what was collected is not what was run", red=True, bold=True)
            for problem in self.problems:
                terminalreporter.line(problem)


def _refuse_equal(ids: list[str]) -> None:
    equal = [f"{test} ({times} times)" for test, times in Counter(ids).items() if times > 1]
    if equal:
        raise pytest.UsageError(f"tests with equal ids, of which pytest-xdist would run one{_names(equal)}")


def _names(tests: list[str]) -> str:
    more = f"\n  … and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    return ":" + "".join(f"\n  {test}" for test in tests[:SHOWN]) + more
