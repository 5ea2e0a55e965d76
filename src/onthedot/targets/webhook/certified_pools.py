"""Connections on which a certificate is shown: a pool for each name, so that none is ever used for another.

The files are looked at every few seconds. When they change they are read anew, and the next connections show what is in
them; those that are in use go when they come back. Files that can't be used change nothing: what was read before goes
on, and a certificate that never could be read is not offered, so that its runs wait or go to a node that has it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping

from onthedot.clock import SystemClock
from onthedot.settings import CertificateSetting
from onthedot.targets.webhook.certificates import CertificateError, findings, load, stamp
from onthedot.targets.webhook.http1.connections import ConnectionPool
from onthedot.telemetry import emit

__all__ = ["CertifiedPools"]

LOOK_EVERY = 2.0
"""Seconds."""


class CertifiedPools:
    def __init__(
        self, settings: Mapping[str, CertificateSetting], pool: Callable[[ssl.SSLContext], ConnectionPool]
    ) -> None:
        """`pool` makes one whose connections are made with this."""
        self._settings = settings
        self._make = pool
        self._pools: dict[str, ConnectionPool] = {}
        self._retired: list[ConnectionPool] = []
        self._stamps: dict[str, tuple[object, ...]] = {}
        self._watch: asyncio.Task[None] | None = None

    @property
    def names(self) -> list[str]:
        """Those that can be used."""
        return sorted(self._pools)

    def get(self, name: str) -> ConnectionPool | None:
        return self._pools.get(name)

    def all(self) -> list[ConnectionPool]:
        return [*self._pools.values(), *self._retired]

    async def open(self) -> None:
        await self.look()
        if self._settings:
            self._watch = asyncio.get_running_loop().create_task(self._keep_looking(), name="onthedot-certificates")

    async def look(self) -> None:
        """Read what has changed since the last look."""
        self._retired = [pool for pool in self._retired if pool.open]
        for name, setting in self._settings.items():
            found = await asyncio.to_thread(stamp, setting)
            if self._stamps.get(name) != found:
                self._stamps[name] = found
                await self._read(name, setting)

    async def _read(self, name: str, setting: CertificateSetting) -> None:
        try:
            context = await asyncio.to_thread(load, setting)
        except CertificateError as error:
            emit("certificate.broken", certificate=name, error=str(error), kept=name in self._pools)
            return
        for wrong, what in await asyncio.to_thread(findings, setting, SystemClock().now_ms()):
            emit("certificate.expires", certificate=name, error=what, expired=wrong)
        before = self._pools.get(name)
        self._pools[name] = self._make(context)
        if before is not None:
            before.drop_idle()
            self._retired.append(before)
            emit("certificate.reloaded", certificate=name)

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await self.look()

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
            self._watch = None
        for pool in self.all():
            await pool.close()
        self._pools, self._retired, self._stamps = {}, [], {}
