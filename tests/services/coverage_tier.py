"""Which lines the tests of pure decisions and of the stores reach: `make test` leaves htmlcov/index.html.

Measuring all tests would take half as long again, and real node processes are not seen anyway. So only tests in these
folders are measured, inside the one run that there is; the page's title says which. Tests of properties are not: they
draw hundreds of examples for lines that other tests reach. Nor are those of stores on PostgreSQL: the same code again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

TESTS = Path(__file__).resolve().parents[1]
MEASURED = (TESTS / "unit", TESTS / "store")


class MeasuredTier:
    def __init__(self, worker: str) -> None:
        folder = TESTS.parent / ".coverage"
        folder.mkdir(exist_ok=True)
        self._coverage = coverage.Coverage(data_file=str(folder / f"data.{worker}"), config_file="pyproject.toml")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        again = "postgres" in item.name
        timed = "hostile" in item.path.name  # it has a limit of seconds, which measuring would use up
        if drawn or again or timed or not any(item.path.is_relative_to(folder) for folder in MEASURED):
            yield
            return
        self._coverage.start()
        try:
            yield
        finally:
            self._coverage.stop()

    def pytest_sessionfinish(self) -> None:
        self._coverage.save()


def pytest_configure(config: pytest.Config) -> None:
    """Only where tests are run, not where they are handed out, and only when asked for."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    # Taken away: a test that starts pytest itself would write into the same file.
    if os.environ.pop("MEASURE_COVERAGE", ""):
        config.pluginmanager.register(MeasuredTier(worker))
