"""Starts the program of a worker process, with its two sockets."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onthedot.targets.process.spawning import Process, spawn

__all__ = ["StartedWorker", "start_worker"]

_PROGRAM = Path(__file__).with_name("worker_process.py")
# Elsewhere there are no such sockets; datagrams between two connected ends are neither lost nor reordered.
_APART = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM


class StartedWorker(NamedTuple):
    process: Process
    calls: socket.socket
    calls_taken: socket.socket  # the worker's end of `calls`, which the node holds too
    answers: socket.socket


def start_worker(import_paths: Sequence[str]) -> StartedWorker:
    """OSError if it can't be started."""
    calls, taken = socket.socketpair(socket.AF_UNIX, _APART)
    answers, told = socket.socketpair()
    with told:
        try:
            process = spawn(
                sys.executable,
                "-P",  # the directory of the program must not be on the import path
                str(_PROGRAM),
                str(taken.fileno()),
                str(told.fileno()),
                "\n".join(import_paths),
                pass_fds=(taken.fileno(), told.fileno()),
                stdout=subprocess.DEVNULL,
                env=_environment(),
            )
        except BaseException:
            for end in (calls, taken, answers):
                end.close()
            raise
    for end in (calls, answers):
        end.setblocking(False)
    return StartedWorker(process, calls, taken, answers)


def _environment() -> dict[str, str]:
    """The node's own, without On the Dot's settings: they hold the store's password."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ONTHEDOT_")}
    return kept | {"PYTHONFAULTHANDLER": "1"}
