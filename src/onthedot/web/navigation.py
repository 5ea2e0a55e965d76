"""The navigation: every page that has a place in it, in order. One that this build does not have is not linked."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from onthedot.api.operations import Operation

__all__ = ["NAVIGATION", "NavEntry", "navigation"]


class NavEntry(msgspec.Struct, frozen=True):
    """`key`: pressed after `g`, it opens the page."""

    label: str
    path: str
    key: str

    def is_current(self, path: str) -> bool:
        return path == self.path or (self.path != "/" and path.startswith(self.path + "/"))


NAVIGATION = (
    NavEntry("Overview", "/", "o"),
    NavEntry("Jobs", "/jobs", "j"),
    NavEntry("Runs", "/runs", "r"),
    NavEntry("Dead letters", "/dead", "d"),
    NavEntry("Operations", "/operations", "b"),
    NavEntry("Alerts", "/alerts", "l"),
    NavEntry("Upcoming", "/upcoming", "u"),
    NavEntry("Nodes", "/nodes", "n"),
    NavEntry("Destinations", "/destinations", "t"),
    NavEntry("Settings", "/settings", "s"),
    NavEntry("Audit", "/audit", "c"),
    NavEntry("API", "/docs", "a"),
)


def navigation(operations: Iterable[Operation]) -> tuple[NavEntry, ...]:
    """The entries whose pages are among these operations."""
    return _served(frozenset(each.path for each in operations if each.method == "GET"))


@lru_cache(8)
def _served(paths: frozenset[str]) -> tuple[NavEntry, ...]:
    return tuple(entry for entry in NAVIGATION if entry.path in paths)
