"""Group commit: whoever waits together is written together, and only the guilty one gets the error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from onthedot.errors import Conflict, Invalid, OnTheDotError, StoreUnavailable
from onthedot.service.create_batcher import CreateBatcher
from onthedot.store import Idempotency, NewJob
from onthedot.telemetry import Event, subscribe
from tests.service.conftest import spec


def new(key: str | None = None, idempotency: str | None = None, tenant: int = 1) -> NewJob:
    repeat = None if idempotency is None else Idempotency(idempotency, "x")
    return NewJob(tenant=tenant, spec=spec(key=key), idempotency=repeat)


def grouped(write: Any, **limits: int) -> Any:
    """Answers here are plain texts, not jobs."""
    return CreateBatcher(write, **limits)


class Written:
    """A store's `create_jobs` that a test holds back and lets fail."""

    def __init__(self) -> None:
        self.groups: list[list[NewJob]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.began = asyncio.Event()
        self.fail: dict[str, Exception] = {}
        self.fail_all: Exception | None = None

    async def __call__(self, items: Sequence[NewJob]) -> list[Any]:
        self.groups.append(list(items))
        self.began.set()
        await self.gate.wait()
        if self.fail_all is not None:
            raise self.fail_all
        for item in items:
            if item.spec.key in self.fail:
                raise self.fail[item.spec.key]
        return [f"made {item.spec.key}" for item in items]

    def keys(self) -> list[list[str | None]]:
        return [[item.spec.key for item in group] for group in self.groups]


@pytest.fixture
def written() -> Written:
    return Written()


async def test_a_lonely_create_is_written_at_once(written):
    group = grouped(written)
    assert await group.create([new("a")]) == ["made a"]
    assert written.keys() == [["a"]]


async def test_those_who_come_while_it_writes_go_together_next(written):
    group = grouped(written)
    written.gate.clear()
    first = asyncio.create_task(group.create([new("a")]))
    await written.began.wait()
    others = [asyncio.create_task(group.create([new(key)])) for key in "bcd"]
    await asyncio.sleep(0)
    written.gate.set()
    assert await first == ["made a"]
    assert await asyncio.gather(*others) == [["made b"], ["made c"], ["made d"]]
    assert written.keys() == [["a"], ["b", "c", "d"]]


async def test_those_who_come_in_the_same_round_of_the_loop_go_together(written):
    """A request that is read a round after the first is not left to the next commit."""
    group = grouped(written)
    first = asyncio.create_task(group.create([new("a")]))
    await asyncio.sleep(0)
    second = asyncio.create_task(group.create([new("b")]))
    assert await first == ["made a"]
    assert await second == ["made b"]
    assert written.keys() == [["a", "b"]]


async def test_a_group_is_bounded(written):
    group = grouped(written, limit=3)
    answers = await group.create([new(str(n)) for n in range(7)])
    assert answers == [f"made {n}" for n in range(7)]
    assert [len(group) for group in written.groups] == [3, 3, 1]


async def test_one_write_per_key_in_a_group(written):
    group = grouped(written)
    answers = await group.create([new("a"), new("b"), new("a"), new("c"), new("a")])
    assert answers == ["made a", "made b", "made a", "made c", "made a"]
    assert written.keys() == [["a", "b", "c"], ["a"], ["a"]]


async def test_one_write_per_idempotency_key_in_a_group(written):
    group = grouped(written)
    await group.create([new("a", "same"), new("b", "same"), new("c", "other")])
    assert written.keys() == [["a", "c"], ["b"]]


async def test_tenants_do_not_contend(written):
    group = grouped(written)
    await group.create([new("a", tenant=1), new("a", tenant=2)])
    assert written.keys() == [["a", "a"]]


async def test_jobs_without_a_key_never_contend(written):
    group = grouped(written)
    await group.create([new(), new(), new()])
    assert written.keys() == [[None, None, None]]


async def test_a_failing_statement_is_tried_singly_and_only_the_guilty_one_fails(written):
    written.fail["bad"] = RuntimeError("value too long")
    group = grouped(written)
    told: list[Event] = []
    stop = subscribe(told.append)
    answers = await group.create([new("a"), new("bad"), new("c")])
    stop()
    assert (answers[0], answers[2]) == ("made a", "made c")
    assert isinstance(answers[1], Invalid)
    assert written.keys() == [["a", "bad", "c"], ["a"], ["bad"], ["c"]]
    assert [(event.name, event.fields["error"]) for event in told] == [
        ("store.refused", "RuntimeError: value too long")
    ]


async def test_an_error_of_ours_reaches_its_own_caller_as_it_is(written):
    written.fail["bad"] = Conflict("the key is already used")
    answers = await grouped(written).create([new("bad"), new("c")])
    assert str(answers[0]) == "the key is already used"
    assert answers[1] == "made c"


async def test_a_store_that_is_away_is_everybody_s_answer_and_not_tried_singly(written):
    written.fail_all = StoreUnavailable("away")
    group = grouped(written)
    answers = await group.create([new("a"), new("b")])
    assert [str(answer) for answer in answers if isinstance(answer, OnTheDotError)] == ["away", "away"]
    assert len(written.groups) == 1
    written.fail_all = None
    assert await group.create([new("a")]) == ["made a"]


async def test_a_caller_that_gives_up_does_not_stop_the_others(written):
    group = grouped(written)
    written.gate.clear()
    gone = asyncio.create_task(group.create([new("a")]))
    await written.began.wait()
    stays = asyncio.create_task(group.create([new("b")]))
    await asyncio.sleep(0)
    gone.cancel()
    written.gate.set()
    assert await stays == ["made b"]
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_drain_waits_for_what_is_being_written(written):
    group = grouped(written)
    written.gate.clear()
    waiting = asyncio.create_task(group.create([new("a")]))
    await written.began.wait()
    drained = asyncio.create_task(group.drain())
    await asyncio.sleep(0)
    assert not drained.done()
    written.gate.set()
    await drained
    assert await waiting == ["made a"]
    await group.drain()


async def test_full_groups_that_wait_get_a_second_and_a_third_writer_and_no_fourth(written):
    group = grouped(written, limit=2)
    written.gate.clear()
    first = asyncio.create_task(group.create([new(), new()]))
    await written.began.wait()
    halves = [asyncio.create_task(group.create([new()])) for _ in range(2)]
    await asyncio.sleep(0)
    assert len(written.groups) == 1, "less than a full group waits for the writer there is"
    more = [asyncio.create_task(group.create([new(), new()])) for _ in range(4)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert [len(items) for items in written.groups] == [2, 2, 2], "three at once, not more"
    written.gate.set()
    await asyncio.gather(first, *halves, *more)
    assert [len(items) for items in written.groups] == [2] * 6
    await group.drain()


async def test_who_comes_as_the_writer_ends_is_not_forgotten(written):
    group = grouped(written)
    for n in range(20):
        assert await group.create([new(str(n))]) == [f"made {n}"]


async def test_nothing_to_create_is_answered_at_once(written):
    assert await grouped(written).create([]) == []
    assert written.groups == []
