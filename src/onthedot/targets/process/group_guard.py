"""What a node starts does not outlive it: a guard process kills the groups of a node that was killed.

Linux can tell a process to die with its parent, but not what that process starts. So a second process hears of each
group, through a pipe that ends with the node (see `guard_process`). Between the start of a command and the note of it
there is nothing but the return of `spawn`. What leaves its group, as a daemon does, is out of reach.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from onthedot.targets.process.guard_process import start_time
from onthedot.targets.process.spawning import Process, signal_group, spawn
from onthedot.telemetry import emit

__all__ = ["GroupGuard"]

_PROGRAM = Path(__file__).with_name("guard_process.py")
REPLACE_AFTER = 1.0
"""Seconds before the next guard, if one ended sooner than that or can't be started."""
ENDS_WITHIN = 2.0
"""Seconds: a guard that is still there then does not run, and is killed."""


class GroupGuard:
    """Of one node. `start` before a group is started, `add` right after it, `remove` when it is over."""

    def __init__(self) -> None:
        self._groups: dict[int, bytes] = {}  # by leader, when it was started
        self._running: _RunningGuard | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the guard process, if there is one."""
        return None if self._running is None else self._running.process.pid

    def start(self) -> None:
        """Start the guard process, unless it runs. OSError or ValueError: it can't be started."""
        if self._running is not None or self._closed:
            return
        self._running = running = _RunningGuard()
        for leader, started in self._groups.items():
            running.tell(b"+%d %b\n" % (leader, started))
        if self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    def add(self, leader: int) -> None:
        """`leader` was not reaped yet: its number is its own."""
        self._groups[leader] = started = start_time(leader)
        if self._running is not None:
            self._running.tell(b"+%d %b\n" % (leader, started))

    def remove(self, leader: int) -> None:
        if self._groups.pop(leader, None) is not None and self._running is not None:
            self._running.tell(b"-%d\n" % leader)

    async def close(self) -> None:
        """The node stops. What is still listed is killed, as if the node had been."""
        self._closed = True
        running, keeper = self._running, self._keeper
        if running is not None:
            running.hang_up()
            await running.ended()
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])

    async def _keep(self) -> None:
        """One that ends by itself is replaced, if there is anything to guard; otherwise the next command does."""
        while (running := self._running) is not None:
            code = await running.process.wait()
            running.hang_up()
            self._running = None
            if self._closed:
                break
            emit("commands.guard_ended", code=code)
            if time.monotonic() - running.since < REPLACE_AFTER:
                await asyncio.sleep(REPLACE_AFTER)
            while self._groups and self._running is None:
                try:
                    self.start()
                except (OSError, ValueError) as error:
                    emit("commands.unguarded", error=str(error))
                    await asyncio.sleep(REPLACE_AFTER)
        self._keeper = None


class _RunningGuard:
    """One guard process, and the end of its pipe that must end with this process."""

    def __init__(self) -> None:
        read_end, write_end = os.pipe()  # neither is inherited by what is started
        try:
            os.set_blocking(write_end, False)
            self.process: Process = spawn(
                sys.executable or "python3",  # a program that embeds Python may not say where it is
                "-I",
                "-S",
                str(_PROGRAM),
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name.startswith(("LD_", "DYLD_"))},
            )
        except BaseException:
            os.close(write_end)
            raise
        finally:
            os.close(read_end)
        self.since = time.monotonic()
        self._write_end = write_end
        self._unsent = bytearray()
        self._loop = asyncio.get_running_loop()
        _write_ends.add(write_end)

    def tell(self, note: bytes) -> None:
        """Never waits: what the pipe does not take is sent when it does."""
        if self._write_end < 0:
            return
        waits = bool(self._unsent)
        self._unsent += note
        if not waits:
            self._send()
            if self._unsent:
                self._loop.add_writer(self._write_end, self._send_rest)

    def hang_up(self) -> None:
        """May be called twice."""
        if self._write_end < 0:
            return
        self._loop.remove_writer(self._write_end)
        _write_ends.discard(self._write_end)
        os.close(self._write_end)
        self._write_end = -1

    async def ended(self) -> None:
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                await self.process.wait()
        except TimeoutError:
            signal_group(self.process.pid, signal.SIGKILL)
            await self.process.wait()

    def _send_rest(self) -> None:
        self._send()
        if not self._unsent:
            self._loop.remove_writer(self._write_end)

    def _send(self) -> None:
        try:
            del self._unsent[: os.write(self._write_end, self._unsent)]
        except BlockingIOError:
            pass
        except OSError:  # it has ended: the next one is told everything
            self._unsent.clear()


_write_ends: set[int] = set()


def _close_in_child() -> None:
    """A fork of the node (`multiprocessing`, in a program that embeds it) must not keep the pipe open."""
    for write_end in [*_write_ends]:
        os.close(write_end)
    _write_ends.clear()


os.register_at_fork(after_in_child=_close_in_child)
