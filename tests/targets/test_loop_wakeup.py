"""Waking a loop: from another thread, however often, and nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from onthedot.targets.inprocess.loop_wakeup import LoopWakeup
from tests.services.waiting import until

FILES = Path("/proc/self/fd")


def open_files() -> int:
    return len(list(FILES.iterdir()))


def woken_elsewhere(wakeup: LoopWakeup, times: int = 1) -> threading.Thread:
    def wake() -> None:
        for _ in range(times):
            wakeup.wake()

    thread = threading.Thread(target=wake)
    thread.start()
    return thread


@pytest.fixture(params=["file", "without"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """On a system without such files it goes the loop's own way."""
    if request.param == "without":
        monkeypatch.delattr(os, "eventfd")
    return str(request.param)


async def test_it_is_heard_on_the_loop_s_own_thread(kind: str):
    heard: list[threading.Thread] = []
    wakeup = LoopWakeup(asyncio.get_running_loop(), lambda: heard.append(threading.current_thread()))
    for count in (1, 2, 3):
        woken_elsewhere(wakeup).join()
        await until(lambda: len(heard) == count)  # noqa: B023
    assert set(heard) == {threading.current_thread()}
    wakeup.close()


async def test_no_wake_up_is_lost_between_hearing_and_looking(kind: str):
    """What was put there before a wake-up is found after it, also by many threads at once."""
    loop, waiting, found = asyncio.get_running_loop(), list[int](), list[int]()

    def take() -> None:
        while waiting:
            found.append(waiting.pop())

    wakeup = LoopWakeup(loop, take)

    def put(first: int) -> None:
        for number in range(first, first + 500):
            waiting.append(number)
            wakeup.wake()

    threads = [threading.Thread(target=put, args=[first]) for first in (0, 500, 1000)]
    for thread in threads:
        thread.start()
    await until(lambda: len(found) == 1500)
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1500))
    wakeup.close()


async def test_many_wake_ups_may_be_heard_once_but_not_never(kind: str):
    heard: list[int] = []
    wakeup = LoopWakeup(asyncio.get_running_loop(), lambda: heard.append(1))
    woken_elsewhere(wakeup, 1000).join()
    await until(lambda: bool(heard))
    await asyncio.sleep(0)
    assert 1 <= len(heard) <= 1000
    wakeup.close()


@pytest.mark.skipif(not FILES.exists(), reason="counts open files")
async def test_closing_leaves_no_file_behind():
    loop = asyncio.get_running_loop()
    LoopWakeup(loop, lambda: None).close()  # whatever the loop itself opens for its first reader
    before = open_files()
    wakeups = [LoopWakeup(loop, lambda: None) for _ in range(10)]
    assert open_files() == before + 10
    for wakeup in wakeups:
        wakeup.close()
        wakeup.close()
    assert open_files() == before


async def test_a_loop_without_files_is_woken_its_own_way(monkeypatch: pytest.MonkeyPatch):
    loop, heard = asyncio.get_running_loop(), list[int]()

    def refuse(*args: object) -> None:
        raise NotImplementedError

    with monkeypatch.context() as patched:
        patched.setattr(loop, "add_reader", refuse, raising=False)
        wakeup = LoopWakeup(loop, lambda: heard.append(1))
    woken_elsewhere(wakeup).join()
    await until(lambda: bool(heard))
    wakeup.close()
