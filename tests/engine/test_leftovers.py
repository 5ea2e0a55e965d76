"""The sweep of what is left outside: what is past its deadline is ended, what is over is removed, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.running.leftovers import Leftovers
from onthedot.errors import StoreUnavailable
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget, ScriptTarget
from onthedot.targets import Call, Targets
from onthedot.targets.contract import Kind, Profile
from onthedot.targets.coroutine import CoroutineKind
from onthedot.telemetry import Event, subscribe


class LeavesThings(CoroutineKind):
    spec: type[Any] = ScriptTarget
    profile = Profile(leaves_behind=True)

    def __init__(self, *names: str, late: Sequence[str] = ()) -> None:
        self.names, self.late, self.is_broken = list(names), list(late), False

    async def send(self, call: Call) -> Outcome:
        raise AssertionError

    async def inventory(self) -> Sequence[str]:
        return list(self.names)

    async def remove(self, name: str) -> bool | None:
        self.names.remove(name)
        return None

    async def end_overdue(self) -> Sequence[str]:
        if self.is_broken:
            raise ConnectionError("away")
        ended, self.late = self.late, []
        return ended


class LivesOnly:
    def __init__(self, *living: tuple[str, int]) -> None:
        self._living, self.is_away = set(living), False

    async def living(self, tries: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        if self.is_away:
            raise StoreUnavailable("away")
        return self._living & set(tries)


@pytest.fixture
def told() -> Iterator[list[tuple[str, Any]]]:
    heard: list[tuple[str, Any]] = []

    def hear(event: Event) -> None:
        if event.name.startswith("leftover."):
            heard.append((event.name, event.fields.get("name")))

    stop = subscribe(hear)
    yield heard
    stop()


def sweep(store: LivesOnly, *kinds: Kind) -> Leftovers:
    clock = FakeClock()
    return Leftovers(kinds=kinds, store=store, clock=clock, rng=random.Random(0), health=StoreHealth())


async def test_what_is_late_is_ended_and_what_is_over_is_removed(told: list[tuple[str, Any]]):
    kind = LeavesThings("7-1-1", "7-2-1", "not-ours", late=["8-1-1"])
    await sweep(LivesOnly(("7-2", 1)), kind)._sweep(kind)
    assert kind.names == ["7-2-1", "not-ours"]
    assert told == [("leftover.ended", "8-1-1"), ("leftover.removed", "7-1-1")]


async def test_nothing_is_removed_while_the_store_is_away(told: list[tuple[str, Any]]):
    kind, store = LeavesThings("7-1-1"), LivesOnly()
    store.is_away = True
    await sweep(store, kind)._sweep(kind)
    assert (kind.names, told) == (["7-1-1"], [])


async def test_a_kind_that_fails_is_asked_again(told: list[tuple[str, Any]]):
    kind = LeavesThings("7-1-1")
    kind.is_broken = True
    leftovers = sweep(LivesOnly(), kind)
    await leftovers._sweep(kind)
    assert (kind.names, told) == (["7-1-1"], [("leftover.kept", None)])
    kind.is_broken = False
    await leftovers._sweep(kind)
    assert kind.names == []


def test_only_kinds_of_which_something_may_be_left_are_swept():
    class LeavesNothing(LeavesThings):
        spec: type[Any] = CommandTarget
        profile = Profile()

    leaves, other = LeavesThings(), LeavesNothing()
    assert Targets([leaves, other]).swept_kinds() == [leaves]
