"""Starts nodes in hundredths of a second: everything is imported once, each life is a fork of it.

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
from typing import Any

import msgspec

from onthedot.main import assembled
from onthedot.settings import load_settings
from onthedot.web import routes
from proof.chaos.node import serve

__all__: list[str] = []


LATE = (
    "onthedot.api.server.server",
    "onthedot.cli.app",
    "onthedot.launcher.serving",
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)


async def _build_once() -> None:
    settings = load_settings({"store": "sqlite:///:memory:", "logs_base_directory": os.devnull}, environ={})
    async with assembled(settings, routes=list(routes)):
        await asyncio.sleep(0.2)


def main() -> None:
    for name in LATE:
        importlib.import_module(name)
    asyncio.run(_build_once())
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are buried at once
    with open(0, "rb", buffering=0, closefd=False) as orders:
        while line := orders.readline():
            pid = os.fork()
            if pid == 0:
                _live(msgspec.json.decode(line))
            os.write(1, msgspec.json.encode({"pid": pid}) + b"\n")


def _live(order: dict[str, Any]) -> None:
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(order["environ"])
        if order.get("files"):  # no more open files than that, and nobody may raise it
            resource.setrlimit(resource.RLIMIT_NOFILE, (order["files"], order["files"]))
        os.chdir(order["directory"])
        serve(order["argv"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
