"""The loop in another thread: there and back, errors and cancelling included."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from onthedot.targets.other_loop import OtherLoop
from tests.targets.processes import until


@pytest.fixture
async def other() -> AsyncIterator[OtherLoop]:
    async with OtherLoop("other") as other:
        yield other


async def test_it_runs_there_and_answers_here(other: OtherLoop):
    async def work() -> tuple[str, asyncio.AbstractEventLoop]:
        await asyncio.sleep(0)
        return threading.current_thread().name, asyncio.get_running_loop()

    name, loop = await other.run(work)
    assert name == "other"
    assert loop is not asyncio.get_running_loop()


async def test_many_at_once_each_get_their_own_answer(other: OtherLoop):
    async def work(number: int) -> int:
        await asyncio.sleep(0.001 * (number % 3))
        return number

    answers = await asyncio.gather(*(other.run(lambda n=n: work(n)) for n in range(500)))  # type: ignore[misc]
    assert answers == list(range(500))


async def test_many_senders_while_the_other_loop_is_blocked_lose_nothing(other: OtherLoop):
    let_go = threading.Event()

    async def block() -> bool:
        return let_go.wait(10)

    async def work() -> int:
        return 1

    blocked = asyncio.ensure_future(other.run(block))
    waiting = [asyncio.ensure_future(other.run(work)) for _ in range(100)]
    await asyncio.sleep(0)
    let_go.set()
    assert await blocked
    assert sum(await asyncio.gather(*waiting)) == 100


async def test_an_error_comes_back(other: OtherLoop):
    async def work() -> None:
        raise ValueError("over there")

    with pytest.raises(ValueError, match="over there"):
        await other.run(work)


async def test_cancelled_here_is_cancelled_there(other: OtherLoop):
    began, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    running = asyncio.ensure_future(other.run(work))
    await until(began.is_set)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(cancelled.is_set)
    assert cancelled.is_set()


async def test_cancelled_before_it_began_does_not_begin(other: OtherLoop):
    let_go, began = threading.Event(), threading.Event()

    async def block() -> bool:
        return let_go.wait(10)

    async def work() -> None:
        began.set()
        await asyncio.Event().wait()

    blocked = asyncio.ensure_future(other.run(block))
    await asyncio.sleep(0)
    unwanted = asyncio.ensure_future(other.run(work))
    await asyncio.sleep(0)
    unwanted.cancel()
    await asyncio.wait([unwanted])
    let_go.set()
    assert await blocked
    await other.run(_nothing)
    assert unwanted.cancelled()


async def test_a_task_that_is_cancelled_over_there_is_cancelled_here(other: OtherLoop):
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await other.run(work)


async def test_leaving_ends_the_thread_and_what_runs_there():
    async with OtherLoop("leaving") as other:
        running = asyncio.ensure_future(other.run(asyncio.Event().wait))
        await other.run(_nothing)
    await asyncio.wait([running])
    assert running.cancelled()
    assert not any(thread.name == "leaving" for thread in threading.enumerate())


async def _nothing() -> None:
    """Through to the other side and back."""
