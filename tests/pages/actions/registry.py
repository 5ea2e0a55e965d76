"""Which walks there are, and which forms and buttons each of them sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.pages.actions.company import Company
from tests.pages.scene import Scene

__all__ = ["ACTIONS", "Action", "does"]

Walk = Callable[[Scene, Company], Awaitable[None]]


class Action(NamedTuple):
    walk: Walk
    sends: frozenset[str]


ACTIONS: dict[str, Action] = {}
"""By name."""


def does(*sends: str) -> Callable[[Walk], Walk]:
    """Declare a walk: `sends` are paths as they are declared, with the button where a form has several."""

    def add(walk: Walk) -> Walk:
        ACTIONS[walk.__name__] = Action(walk, frozenset(sends))
        return walk

    return add
