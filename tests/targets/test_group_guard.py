"""Commands die with a node that is killed: whole groups, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from onthedot.model.targets import CommandTarget
from onthedot.settings import CommandSetting
from onthedot.targets.command.kind import Commands
from onthedot.targets.process import group_guard
from onthedot.targets.process.group_guard import GroupGuard
from onthedot.targets.process.guard_process import UNKNOWN, end, start_time
from onthedot.targets.process.spawning import Process, signal_group, spawn
from onthedot.telemetry import Event, subscribe
from tests.services.waiting import until
from tests.targets.conftest import Log, MakeCall
from tests.targets.processes import gone
from tests.targets.sending import send

NODE = """
import asyncio, os, sys, time
from onthedot.model.targets import CommandTarget
from onthedot.settings import CommandSetting
from onthedot.targets import Call
from onthedot.targets.command.kind import Commands
from tests.targets.sending import send

def said(text):
    print(text, end="", flush=True)
    if sys.argv[1] == "fork" and os.fork() == 0:
        print("fork", os.getpid(), flush=True)
        time.sleep(600)

async def main():
    async with Commands({"it": CommandSetting(argv=("/bin/sh", "-c", "sleep 600 & echo group $$ $!; wait"))}) as kind:
        target = CommandTarget(command="it")
        await send(kind, Call(run_id="1", job_id=1, slot=1, attempt=1, target=target, log=said))

asyncio.run(main())
"""


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Pids that a test learns of; none outlives it, though it fails."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def running_node(how: str, started: list[int]) -> asyncio.subprocess.Process:
    node = await asyncio.create_subprocess_exec(sys.executable, "-c", NODE, how, stdout=asyncio.subprocess.PIPE)
    assert node.stdout is not None
    while not started:
        word, *pids = (await node.stdout.readline()).decode().split()
        assert word == "group"
        started += map(int, pids)
    assert not any(gone(pid) for pid in started)
    return node


async def group() -> tuple[Process, list[int]]:
    """A leader and its child, in a group of their own."""
    reading, writing = os.pipe()
    process = spawn("/bin/sh", "-c", "sleep 600 & echo $!; wait", stdout=writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        child = int(await asyncio.to_thread(told.readline))
    return process, [process.pid, child]


async def was_spared(process: Process) -> bool:
    """It ends by this, and not by what was there before: a group that was killed may take its time to be gone."""
    signal_group(process.pid, signal.SIGTERM)
    return await process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_a_group_dies_with_its_node(how: signal.Signals, started: list[int]):
    node = await running_node("plain", started)
    node.send_signal(how)
    await node.communicate()
    assert node.returncode == -how
    for pid in started:
        await until(partial(gone, pid), "the group is gone")


async def test_a_fork_of_the_node_does_not_keep_its_commands_alive(started: list[int]):
    """As `multiprocessing` makes them in a program that embeds the node."""
    node = await running_node("fork", started)
    assert node.stdout is not None
    word, pid = (await node.stdout.readline()).decode().split()
    leader_and_child = [*started]
    started.append(int(pid))
    node.kill()
    for each in leader_and_child:
        await until(partial(gone, each), "the group is gone")
    assert (word, gone(int(pid))) == ("fork", False)
    os.kill(int(pid), signal.SIGKILL)
    await node.communicate()  # until its output ends, which the fork has too


async def test_a_guard_hears_of_each_command(make_call: MakeCall, log: Log):
    """The end of the pipe is all that it hears of the end of a node."""
    script = "sleep 600 & echo $!; wait"
    async with Commands({"it": CommandSetting(argv=("/bin/sh", "-c", script))}) as commands:
        running = asyncio.ensure_future(send(commands, make_call(CommandTarget(command="it"))))
        await until(lambda: log.text.endswith("\n"), "it runs")
        assert commands._guard is not None
        await commands._guard.close()
        await asyncio.wait([running], timeout=5)
        running.cancel()
        await asyncio.wait([running])
    assert not running.cancelled(), "it was killed before"
    assert running.result().error == "killed by SIGKILL"
    await until(partial(gone, int(log.text)), "its child is gone")


async def test_a_guard_that_was_killed_is_replaced_by_one_that_knows_what_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_guard, "REPLACE_AFTER", 0.01)
    guard = GroupGuard()
    guard.start()
    process, pids = await group()
    guard.add(process.pid)
    first = guard.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    second = await until(lambda: guard.pid if guard.pid not in (None, first) else None, "there is another")
    assert second is not None
    assert gone(first)
    await guard.close()
    assert await process.wait() == -signal.SIGKILL
    for pid in pids:
        await until(partial(gone, pid), "the group is gone")
    assert gone(second)


async def test_what_is_over_is_left_alone_and_the_guard_ends_with_the_node():
    guard = GroupGuard()
    guard.start()
    process, pids = await group()
    guard.add(process.pid)
    guard.remove(process.pid)
    pid = guard.pid
    assert pid is not None
    await guard.close()
    assert gone(pid)
    assert not gone(pids[1])
    assert await was_spared(process)


async def test_signals_to_all_of_a_service_do_not_end_the_guard():
    guard = GroupGuard()
    guard.start()
    pid = guard.pid
    assert pid is not None
    assert os.getsid(pid) == pid, "Ctrl-C does not reach it"

    def ignored() -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("SigIgn:")[1].split()[0], 16) >> (signal.SIGTERM - 1) & 1

    await until(ignored, "it has started")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    process, _ = await group()
    guard.add(process.pid)
    await guard.close()
    assert await process.wait() == -signal.SIGKILL


async def test_a_guard_that_does_not_read_holds_up_nothing_and_misses_nothing():
    guard = GroupGuard()
    guard.start()
    running = guard._running
    assert running is not None
    os.kill(running.process.pid, signal.SIGSTOP)
    try:
        for number in range(10_000_000, 10_010_000):  # no process has such a number
            guard.add(number)
            guard.remove(number)
        process, _ = await group()
        guard.add(process.pid)
        assert running._unsent
    finally:
        os.kill(running.process.pid, signal.SIGCONT)
    await until(lambda: not running._unsent, "all is told")
    await guard.close()
    assert not await was_spared(process)


async def test_a_guard_that_stands_still_does_not_hold_up_the_end_of_the_node(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(group_guard, "ENDS_WITHIN", 0.01)
    guard = GroupGuard()
    guard.start()
    pid = guard.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await guard.close()
    assert gone(pid)


async def test_a_number_that_was_given_to_another_process_is_spared():
    process, _ = await group()
    end(process.pid, b"1")
    assert await was_spared(process)
    other, _ = await group()
    end(other.pid, start_time(other.pid))
    assert not await was_spared(other)


async def test_where_no_start_time_is_to_be_had_the_number_has_to_do():
    process, _ = await group()
    end(process.pid, UNKNOWN)
    assert await process.wait() == -signal.SIGKILL
    assert start_time(process.pid) == UNKNOWN


async def test_a_leader_that_is_gone_does_not_save_the_others():
    process, (leader, child) = await group()
    started = start_time(leader)
    os.kill(leader, signal.SIGKILL)
    await process.wait()
    assert not gone(child)
    end(leader, started)
    await until(partial(gone, child), "the child is gone")


async def test_a_note_that_was_cut_off_is_none():
    """Of a node that was killed while the pipe was full."""
    process, _ = await group()
    guard = subprocess.Popen([sys.executable, "-I", "-S", group_guard._PROGRAM], stdin=subprocess.PIPE)
    await asyncio.to_thread(guard.communicate, b"+%d %b" % (process.pid, start_time(process.pid)))
    assert guard.returncode == 0
    assert await was_spared(process)


async def test_a_command_does_not_keep_the_pipe_of_the_guard_open(make_call: MakeCall, log: Log):
    async with Commands({"it": CommandSetting(argv=("/bin/ls", "/proc/self/fd"))}) as commands:
        assert (await send(commands, make_call(CommandTarget(command="it")))).ok
        assert commands._guard is not None
        assert commands._guard.pid is not None
    assert log.text.split() == ["0", "1", "2", "3"], "its streams, and the folder that it reads"


async def test_the_guard_starts_with_the_first_command_and_stays(make_call: MakeCall):
    async with Commands({"it": CommandSetting(argv=("true",))}) as commands:
        guard = commands._guard
        assert guard is not None
        pids = [guard.pid]
        assert (await send(commands, make_call(CommandTarget(command="it")))).ok
        pids.append(guard.pid)
        assert (await send(commands, make_call(CommandTarget(command="it")))).ok
        pids.append(guard.pid)
    none, first, second = pids
    assert none is None
    assert first is not None
    assert first == second
    assert gone(first)


async def test_without_an_interpreter_for_the_guard_commands_run_and_the_log_says_so(
    make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    heard: list[Event] = []
    stop = subscribe(heard.append)
    try:
        async with Commands({"it": CommandSetting(argv=("true",))}) as commands:
            assert (await send(commands, make_call(CommandTarget(command="it")))).ok
    finally:
        stop()
    (event,) = [event for event in heard if event.name == "commands.unguarded"]
    assert "/no/such/python" in event.fields["error"]
