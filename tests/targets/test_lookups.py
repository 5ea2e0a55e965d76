"""Name servers that do not answer cost their own tenant time, and nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from onthedot.targets.webhook import lookups
from onthedot.targets.webhook.lookups import AT_ONCE, SHARE, Lookups, NoAnswer
from onthedot.telemetry import Event, telemetry
from tests.services.waiting import until


class Resolver:
    """Answers what does not begin with "dead"; the others when it is told to."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.asked: list[str] = []

    def __call__(self, name: str) -> str:
        self.asked.append(name)
        if name.startswith("dead"):
            self.release.wait(30)
        if name.startswith("none"):
            raise OSError("no such name")
        return f"address of {name}"


@pytest.fixture
def resolver() -> Iterator[Resolver]:
    resolver = Resolver()
    yield resolver
    resolver.release.set()


async def test_a_look_up_that_hangs_is_given_up_and_counted(resolver, monkeypatch):
    monkeypatch.setattr(lookups, "SECONDS", 0.05)
    heard: list[Event] = []
    stop = telemetry.subscribe(heard.append)
    looking = Lookups(resolver)
    try:
        with pytest.raises(NoAnswer, match="DNS lookup timed out"):
            await looking.find("dead.example", 1)
    finally:
        stop()
    assert [(event.name, event.fields["host"]) for event in heard] == [("lookup.abandoned", "dead.example")]
    assert looking.left == 1
    resolver.release.set()
    await until(lambda: looking.left == 0, "its thread has ended")


async def test_the_names_of_one_tenant_do_not_keep_those_of_another_waiting(resolver):
    looking = Lookups(resolver)
    dead = [asyncio.ensure_future(looking.find(f"dead{n}.example", 1)) for n in range(100)]
    await until(lambda: len(resolver.asked) == SHARE, "as many as one tenant may have are under way")
    async with asyncio.timeout(5):
        assert await looking.find("fine.example", 2) == "address of fine.example"
    assert len(resolver.asked) == SHARE + 1
    resolver.release.set()
    assert len(await asyncio.gather(*dead)) == 100


async def test_threads_are_bounded(resolver, monkeypatch):
    monkeypatch.setattr(lookups, "SECONDS", 0.05)
    looking = Lookups(resolver)
    asked = [looking.find(f"dead{n}.example", n % 10) for n in range(300)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(outcome, NoAnswer) for outcome in outcomes)
    assert len(resolver.asked) == looking.left <= lookups.LEFT_MOST + AT_ONCE
    resolver.release.set()
    await until(lambda: looking.left == 0, "the threads have ended")
    assert await looking.find("fine.example", 1) == "address of fine.example"


async def test_who_gives_up_makes_room(resolver):
    looking = Lookups(resolver)
    tasks = [asyncio.ensure_future(looking.find(f"dead{n}.example", 1)) for n in range(SHARE + 3)]
    await until(lambda: len(resolver.asked) == SHARE, "the others wait")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    async with asyncio.timeout(5):
        assert await looking.find("fine.example", 1) == "address of fine.example"
        with pytest.raises(OSError, match="no such name"):
            await looking.find("none.example", 1)
