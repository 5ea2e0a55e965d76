"""A service that is not here: a skip on somebody's own machine, a failure where everything must be there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["missing"]


def missing(why: object) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(str(why))
    pytest.skip(str(why))
