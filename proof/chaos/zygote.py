"""Forks the nodes of a chaos run (proof/forks.py): one is started again every few seconds."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from proof.chaos.node import serve
from proof.forks import fork, live, preload

__all__: list[str] = []


def main() -> None:
    preload()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are buried at once
    with open(0, "rb", buffering=0, closefd=False) as orders:
        while line := orders.readline():
            pid = fork()
            if pid == 0:
                _live(msgspec.json.decode(line))
            os.write(1, msgspec.json.encode({"pid": pid}) + b"\n")


def _live(order: dict[str, Any]) -> NoReturn:
    os.environ.update(order["environ"])
    command = partial(serve, order["argv"])
    live(command, directory=Path(order["directory"]), log=Path(order["log"]), files=order.get("files"))


if __name__ == "__main__":
    main()
