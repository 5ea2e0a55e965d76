"""Starts nodes in hundredths of a second: everything is imported once, each life is a fork of it.

Forked before there is a loop, a thread or a connection: a life begins as empty as one that was started by hand.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Any

import msgspec

from proof.chaos.node import serve

__all__: list[str] = []


def main() -> None:
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
