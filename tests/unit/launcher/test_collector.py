"""The garbage collector of a server."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from onthedot.launcher.collector import YOUNG, calm_collector


@pytest.fixture(autouse=True)
def its_own() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_what_is_there_when_a_server_is_up_is_no_longer_looked_through() -> None:
    here_to_stay: list[object] = [[]]
    calm_collector()
    assert all(found is not here_to_stay for found in gc.get_objects())


def test_circles_are_still_found() -> None:
    calm_collector()
    lost = weakref.ref(Cycle())
    kept: list[list[int]] = [[] for _ in range(2 * YOUNG)]  # what a server makes meanwhile
    assert lost() is None
    assert kept
