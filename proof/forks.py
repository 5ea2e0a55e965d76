"""Nodes started in hundredths of a second: everything is imported once, each life is a fork of the process that did it.

Forked while there is no loop, thread or connection: a life begins as empty as one that was started by hand. A whole
node is built and taken down once before, so that what the product imports late is there too.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from onthedot.main import assembled
from onthedot.settings import load_settings
from onthedot.web import routes

__all__ = ["fork", "live", "preload"]

LATE = (
    "onthedot.api.server.server",
    "onthedot.cli.app",
    "onthedot.cli.serve",
    "onthedot.launcher.serving",
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)


def preload() -> None:
    for name in LATE:
        importlib.import_module(name)
    asyncio.run(_build_once())
    gc.collect()
    gc.freeze()


async def _build_once() -> None:
    settings = load_settings({"store": "sqlite:///:memory:", "logs_base_directory": os.devnull}, environ={})
    async with assembled(settings, routes=list(routes)):
        await asyncio.sleep(0.2)


def fork() -> int:
    """os.fork(), but the child has a session of its own when its parent hears of it: it can be killed with all that it
    starts from then on."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
    os.close(told)
    if pid:
        os.read(ready, 1)  # the end, when both have closed the other side
    os.close(ready)
    return pid


def live(command: Callable[[], object], *, directory: Path, log: Path, files: int | None) -> NoReturn:
    """The rest of a fork's life. What it prints is added to `log`. `files`: no more may be open, and nobody may raise
    it."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        printed = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for where, what in ((0, nothing), (1, printed), (2, printed)):
            os.dup2(what, where)
        os.close(nothing)
        os.close(printed)
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        os.chdir(directory)
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
