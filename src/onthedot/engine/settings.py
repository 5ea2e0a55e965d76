"""What the engine needs to know of the settings, with what no setting decides beside it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

from onthedot.settings import Settings
from onthedot.version import __version__

__all__ = ["EngineSettings"]


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations in ms, as everywhere in settings."""

    name: str = "node"
    host: str = "localhost"
    pid: int = 0
    version: str = __version__
    roles: tuple[str, ...] = ("executor",)
    next_job_count: int = 1000
    lookahead: int = 2000
    poll_interval: int = 1000
    granularity: int = 1000
    lease: int = 5000
    grace: int = 10_000
    concurrency: int = 1000
    destination_concurrency: int | None = None  # a quarter of the pool
    timeout_seconds: float = 3.0  # read by the name in `TargetSpec.timeout_setting`
    retention: int = 30 * 24 * 3600 * 1000
    logs_base_directory: Path | None = None
    labels: tuple[str, ...] = ()
    binding: str | None = None
    exposed: bool = False
    callback_base: str | None = None  # where receivers reach an API of this installation
    alone: bool = False
    """Holding the SQLite file's lock proves all other nodes dead: their runs are taken back at once."""

    @classmethod
    def of(cls, settings: Settings) -> EngineSettings:
        directory = settings.logs_base_directory
        return cls(
            name=settings.node_name or socket.gethostname(),
            host=socket.gethostname(),
            pid=os.getpid(),
            roles=tuple(settings.roles),
            next_job_count=settings.next_job_count,
            lookahead=settings.lookahead,
            poll_interval=settings.poll_interval,
            granularity=settings.granularity,
            lease=settings.lease,
            grace=settings.grace,
            concurrency=settings.concurrency,
            destination_concurrency=settings.destination_concurrency,
            timeout_seconds=settings.timeout_seconds,
            retention=settings.retention,
            logs_base_directory=None if str(directory) in ("", os.devnull) else directory,
            labels=settings.labels,
            binding=settings.binding,
            exposed=settings.exposed,
            callback_base=settings.callback_base,
            alone=settings.is_sqlite,
        )
