"""One life of a node: a process that the zygote forked. It is not our child, so it is watched and told by its pidfd."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from proof.chaos.wire import Helper

__all__ = ["Life"]


class Life:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._over = asyncio.Event()
        self._handle = -1
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:  # that was quick
            self._over.set()
        else:
            asyncio.get_running_loop().add_reader(self._handle, self._ended)

    @classmethod
    async def begin(
        cls,
        zygote: Helper,
        argv: Sequence[str],
        *,
        directory: Path,
        log: Path,
        environ: Mapping[str, str],
        files: int | None = None,
    ) -> Life:
        """As `onthedot serve …` would begin; what it prints is added to `log`. files: how many it may have open."""
        order = {"argv": ["serve", *argv], "directory": str(directory), "log": str(log), "environ": dict(environ)}
        return cls((await zygote.ask(**order, files=files))["pid"])

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def signal(self, number: signal.Signals) -> None:
        if not self.over:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    async def ended(self, within: float | None = None) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._over.wait()
        return self.over

    async def end(self) -> None:
        """Now, with all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if not self.over:
                os.killpg(self.pid, signal.SIGKILL)
        self.signal(signal.SIGKILL)  # before it had a group of its own
        await self.ended()

    def _ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self._over.set()
