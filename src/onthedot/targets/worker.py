"""One worker process, seen from the node: it is started, asked one thing at a time, and killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onthedot.targets.output import Output
from onthedot.targets.spawning import signal_group, spawn

__all__ = ["Worker", "WorkerDied"]

_PROGRAM = Path(__file__).with_name("worker_main.py")
_ANSWER_LIMIT = 1024 * 1024


class WorkerDied(Exception):
    """The process ended in the middle of a call; the message says how."""


class Worker:
    """A process in its own session, so that it and all it starts can be killed as one group."""

    def __init__(self, process: asyncio.subprocess.Process, link: socket.socket) -> None:
        self._process, self._link = process, link
        self.calls = 0
        self.pid = process.pid

    @classmethod
    async def start(cls, import_paths: Sequence[str]) -> Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = await spawn(
                    sys.executable,
                    "-P",  # the directory of the program must not be on the import path
                    str(_PROGRAM),
                    str(theirs.fileno()),
                    json.dumps(list(import_paths)),
                    pass_fds=(theirs.fileno(),),
                    stdout=asyncio.subprocess.DEVNULL,
                    env=_environment(),
                )
            except BaseException:
                ours.close()
                raise
        ours.setblocking(False)
        return cls(process, ours)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def ready(self) -> bool:
        """Alive and silent. A killed process hangs up before the loop hears that it has ended."""
        try:
            self._link.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return self.alive
        except OSError:
            return False
        return False  # hung up, or said something nobody asked for

    async def call(self, request: dict[str, Any], log: Callable[[str], None]) -> dict[str, Any]:
        """Ask, and wait for the answer; WorkerDied if there will be none. Cancelled, the worker is of no more use."""
        self.calls += 1
        output = Output(log)
        answer = asyncio.ensure_future(self._ask(request, output))
        ended = asyncio.ensure_future(self._process.wait())
        try:
            # The end of the process is watched beside the socket: a child it forked may keep the socket open.
            await asyncio.wait((answer, ended), return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and answer.exception() is None:
                return answer.result()
            if answer.done() and self.alive:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(ended), 1.0)  # it hung up: it is about to end
            if self.alive:
                raise WorkerDied(f"the worker process broke off: {answer.exception()}")
            raise WorkerDied(_how_it_ended(self._process.returncode))
        finally:
            for waiting in (answer, ended):
                waiting.cancel()
            output.finish()
            # Until they have let go of the socket: its number may belong to another one as soon as it is closed.
            await asyncio.gather(answer, ended, return_exceptions=True)

    async def _ask(self, request: dict[str, Any], output: Output) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        raw = json.dumps(request).encode()
        socket.send_fds(self._link, [len(raw).to_bytes(4, "big")], [output.write_fd])
        output.close_write()
        await loop.sock_sendall(self._link, raw)
        size = int.from_bytes(await self._exactly(4), "big")
        if size > _ANSWER_LIMIT:
            raise ValueError("its answer makes no sense")
        return dict(json.loads(await self._exactly(size)))

    async def _exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = await asyncio.get_running_loop().sock_recv(self._link, size - len(parts))
            if not part:
                raise EOFError("it hung up")
            parts += part
        return parts

    def kill(self) -> None:
        """End it and whatever it started, at once."""
        if self.alive:
            signal_group(self.pid, signal.SIGKILL)
        self._link.close()

    async def gone(self) -> None:
        """Until the killed process has been reaped."""
        await self._process.wait()


def _environment() -> dict[str, str]:
    """The node's own, without On the Dot's settings: they hold the store's password."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ONTHEDOT_")}
    return kept | {"PYTHONFAULTHANDLER": "1"}


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "the worker process broke off"
    if code >= 0:
        return f"the worker process ended with exit code {code} in the middle of the call"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"the worker process was killed by {name}{hint}"
