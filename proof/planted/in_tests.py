"""A pytest plugin: `PLANTED="finish_done: any token" pytest -p proof.planted.in_tests` runs tests with that bug in."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from proof.planted.bugs import BUGS
from proof.planted.plant import planted

_planted = ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    (bug,) = (bug for bug in BUGS if bug.name == os.environ["PLANTED"])
    _planted.enter_context(planted(bug))


def pytest_unconfigure(config: pytest.Config) -> None:
    _planted.close()
