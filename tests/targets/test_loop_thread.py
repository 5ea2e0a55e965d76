"""The loop in another thread: calls go there and come back, errors and cancelling included."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvloop

from onthedot.targets.inprocess.loop_thread import LoopThread
from tests.services.waiting import until


class Work:
    """A call as `InProcessFunctions` has them: it keeps its own result and gives it to whoever waits at home."""

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self.home: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self.brought_by: threading.Thread | None = None
        self._work = work
        self._result: object = None
        self._error: BaseException | None = None

    async def carry_out(self) -> None:
        try:
            self._result = await self._work()
        except BaseException as error:
            self._error = error

    def bring_home(self) -> None:
        self.brought_by = threading.current_thread()
        if self._error is not None:
            self.home.set_exception(self._error)
        else:
            self.home.set_result(self._result)

    def tell_begun(self) -> bool:
        return True

    def may_wait(self) -> bool:
        return False


def send(other: LoopThread, work: Callable[[], Awaitable[object]]) -> Work:
    call = Work(work)
    other.send(call)
    return call


async def answer(call: Work) -> object:
    async with asyncio.timeout(10):
        return await call.home


async def nothing() -> None:
    """Through to the other side and back."""


@pytest.fixture
async def other() -> AsyncIterator[LoopThread]:
    async with LoopThread("other") as other:
        yield other


@pytest.fixture
async def blocked(other: LoopThread) -> AsyncIterator[Callable[[], None]]:
    """The other loop does nothing else until the test calls this."""
    began, let_go = threading.Event(), threading.Event()

    async def block() -> bool:
        began.set()
        return let_go.wait(10)

    blocker = send(other, block)
    await until(began.is_set)
    yield let_go.set
    let_go.set()
    assert await answer(blocker)


async def stop_loop() -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


async def leave_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit, "leaving")
    await asyncio.sleep(0)


async def leave_in_a_task() -> None:
    async def leave() -> None:
        sys.exit("leaving")

    with contextlib.suppress(SystemExit):
        await asyncio.create_task(leave())


@pytest.mark.parametrize("uses_uvloop", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("ends", [stop_loop, leave_in_a_callback, leave_in_a_task])
def test_who_stops_the_loop_stops_nobody(ends: Callable[[], Awaitable[None]], uses_uvloop: bool):
    async def carry_out() -> list[object]:
        later = asyncio.Event()  # only of the other loop

        async def come_later() -> str:
            later.set()
            return "came later"

        async with LoopThread("other") as other:
            waiting = send(other, later.wait)
            ending = send(other, ends)
            return [await answer(ending), await answer(send(other, come_later)), await answer(waiting)]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if uses_uvloop else None) as runner:
        assert runner.run(carry_out()) == [None, "came later", True]


async def test_it_runs_there_and_answers_here(other: LoopThread):
    loops: list[asyncio.AbstractEventLoop] = []

    async def work() -> str:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return threading.current_thread().name

    call = send(other, work)
    assert await answer(call) == "other"
    assert loops[0] is not asyncio.get_running_loop()
    assert call.brought_by is threading.current_thread()


async def test_many_at_once_each_get_their_own_answer(other: LoopThread):
    """Some end at once and share a task, some wait."""

    def numbered(number: int) -> Callable[[], Awaitable[object]]:
        async def work() -> int:
            for _ in range(number % 3):
                await asyncio.sleep(0)
            return number

        return work

    calls = [send(other, numbered(number)) for number in range(500)]
    assert [await answer(call) for call in calls] == list(range(500))


async def test_many_senders_while_the_other_loop_is_blocked_lose_nothing(
    other: LoopThread, blocked: Callable[[], None]
):
    """Those of this loop, in several passes of it, and threads."""

    def numbered(number: int) -> Callable[[], Awaitable[object]]:
        async def work() -> int:
            return number

        return work

    calls = [Work(numbered(number)) for number in range(120)]
    for number in range(60):
        other.send(calls[number])
        if number % 10 == 9:
            await asyncio.sleep(0)

    def send_all(mine: list[Work]) -> None:
        for call in mine:
            other.send_from_thread(call)

    parts = (calls[60:80], calls[80:100], calls[100:])
    threads = [threading.Thread(target=send_all, args=[mine]) for mine in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert not any(call.home.done() for call in calls)
    blocked()
    assert [await answer(call) for call in calls] == list(range(120))


async def test_an_error_comes_back(other: LoopThread):
    async def work() -> None:
        raise ValueError("over there")

    with pytest.raises(ValueError, match="over there"):
        await answer(send(other, work))
    await answer(send(other, nothing))


async def test_cancelled_here_is_cancelled_there(other: LoopThread):
    began, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    call = send(other, work)
    await until(began.is_set)
    other.cancel(call)
    with pytest.raises(asyncio.CancelledError):
        await answer(call)
    assert cancelled.is_set()


async def test_one_that_ends_all_the_same_comes_home_with_it(other: LoopThread):
    began = threading.Event()

    async def work() -> str:
        began.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "after all"

    call = send(other, work)
    await until(began.is_set)
    other.cancel(call)
    assert await answer(call) == "after all"
    await answer(send(other, nothing))


@pytest.mark.parametrize("on_its_way", [True, False])
async def test_taken_back_before_it_began_does_not_begin(
    other: LoopThread, blocked: Callable[[], None], on_its_way: bool
):
    """It waits over there, or has not even left."""
    began = threading.Event()

    async def work() -> None:
        began.set()

    unwanted, wanted = send(other, work), send(other, nothing)
    if on_its_way:
        await asyncio.sleep(0)
    assert other.take_back(unwanted)
    assert not other.take_back(unwanted)
    blocked()
    await answer(wanted)
    await answer(send(other, nothing))
    assert not began.is_set()
    assert unwanted.brought_by is None


async def test_one_that_is_cancelled_over_there_says_so_here(other: LoopThread):
    """By somebody else than us: that is a result as any other, and harms none that shares its task."""

    async def work() -> None:
        raise asyncio.CancelledError

    cancelled, after = send(other, work), send(other, nothing)
    with pytest.raises(asyncio.CancelledError):
        await answer(cancelled)
    await answer(after)


async def test_leaving_ends_the_thread_and_what_runs_there():
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with LoopThread("leaving") as other:
        call = send(other, work)
        await answer(send(other, nothing))
    assert ended.is_set()
    with pytest.raises(asyncio.CancelledError):
        await answer(call)
    assert not any(thread.name == "leaving" for thread in threading.enumerate())


async def test_what_is_said_meanwhile_comes_home_before_the_answer(other: LoopThread):
    """A run's log must be there when its result is: also what a thread says that the call waits for."""
    heard: list[str] = []

    def work(number: int) -> Callable[[], Awaitable[object]]:
        async def work() -> None:
            other.say(lambda: heard.append(f"{number} began"))
            if number % 2:
                await asyncio.to_thread(other.say, lambda: heard.append(f"{number} from a thread"))
            other.say(lambda: heard.append(f"{number} ended"))

        return work

    for number in range(100):
        call = send(other, work(number))
        await answer(call)
        heard.append(f"{number} is home")
    for number in range(100):
        thread = [f"{number} from a thread"] if number % 2 else []
        said = [f"{number} began", *thread, f"{number} ended", f"{number} is home"]
        assert [text for text in heard if text.split()[0] == str(number)] == said


async def test_what_is_said_when_it_is_over_is_no_error():
    async with LoopThread("other") as other:
        pass
    said = threading.Event()
    await asyncio.to_thread(other.say, said.set)
    await until(said.is_set)


async def test_one_that_fails_at_home_keeps_no_other_waiting(other: LoopThread):
    def fail() -> None:
        raise ZeroDivisionError

    async def work() -> None:
        other.say(fail)

    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(context["exception"]))
    assert await answer(send(other, work)) is None
    assert [type(error) for error in failed] == [ZeroDivisionError]
