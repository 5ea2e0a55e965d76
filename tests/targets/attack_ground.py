"""Runs attempts on the network in a namespace with nothing but `lo`, which has the addresses that they try: run as
a program, so that no attempt can reach any other machine, whatever goes wrong. Prints what each attempt says.

    python -m tests.targets.attack_ground SANDBOX     SANDBOX: cgroup, rlimits, landlock, engine, or none
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from onthedot.targets import Call
from onthedot.targets.script.kind import Scripts
from tests.services.container_engine import running_engine
from tests.services.python_image import import_python
from tests.targets.attacks import NETWORK_ATTACKS, code_of, one_by_one
from tests.targets.sandboxes import PYTHON, python, scripts_by, scripts_in
from tests.targets.sending import send

ROOT = Path(__file__).resolve().parents[2]
ADDRESSES = ("203.0.113.7", "169.254.169.254")
_NEW_NET = 0x40000000
_SET_FLAGS, _SET_ADDRESS = 0x8914, 0x8916


def alone() -> None:
    """From here on this process has a network of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NET):
        raise OSError(ctypes.get_errno(), "no network of its own")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for number, address in enumerate(("127.0.0.1", *ADDRESSES)):
            name = b"lo" if not number else f"lo:{number}".encode()
            packed = struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address))
            if number:
                fcntl.ioctl(control, _SET_ADDRESS, packed)
            fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH", name, 0x1 | 0x40))


@contextmanager
def listening(folder: Path) -> Iterator[dict[str, Any]]:
    """Receivers that greet whoever reaches them."""
    with ExitStack() as stack:

        def serves(family: int, address: Any) -> socket.socket:
            server = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
            server.bind(address)
            server.listen()
            threading.Thread(target=greet, args=(server,), daemon=True).start()
            return server

        tcp, tcp6 = serves(socket.AF_INET, ("0.0.0.0", 0)), serves(socket.AF_INET6, ("::1", 0))
        abstract = f"onthedot-prey-{os.getpid()}"
        serves(socket.AF_UNIX, f"\0{abstract}")
        serves(socket.AF_UNIX, str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        threading.Thread(target=answer, args=(udp,), daemon=True).start()
        yield {
            "tcp": tcp.getsockname()[1],
            "tcp6": tcp6.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            "socket_file": str(folder / "socket"),
        }


def greet(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"reached")


def answer(server: socket.socket) -> None:
    while True:
        try:
            _, sender = server.recvfrom(100)
            server.sendto(b"reached", sender)
        except OSError:
            return


async def attempted(sandbox: str, prey: dict[str, Any]) -> dict[str, Any]:
    with scripts_of(sandbox) as scripts:
        return await _attempted(sandbox, scripts, prey)


@contextmanager
def scripts_of(sandbox: str) -> Iterator[Scripts | None]:
    if sandbox == "engine":
        with running_engine() as engine:
            import_python(engine)
            yield scripts_by(engine)
    else:
        yield None if sandbox == "none" else scripts_in(sandbox)


async def _attempted(sandbox: str, scripts: Scripts | None, prey: dict[str, Any]) -> dict[str, Any]:
    found = {}
    if sandbox == "engine":
        assert scripts is not None
        call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=python(one_by_one(NETWORK_ATTACKS)), params=prey)
        told: dict[str, Any] = (await send(scripts, call)).detail["result"]
        return told
    for attack in NETWORK_ATTACKS:
        if scripts is None:
            if not attack.plain:
                continue
            done = subprocess.run(
                [PYTHON, "-c", code_of(attack)], input=json.dumps(prey), capture_output=True, text=True
            )
            found[attack.name] = json.loads(done.stdout.splitlines()[-1])
            continue
        call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=python(code_of(attack)), params=prey)
        outcome = await send(scripts, call)
        found[attack.name] = outcome.detail.get("result") or {"escaped": False, "loot": outcome.error}
    return found


def on_the_ground(sandbox: str) -> dict[str, Any]:
    if os.geteuid() != 0:
        pytest.skip("a network of its own takes root")
    done = subprocess.run(
        [sys.executable, "-m", "tests.targets.attack_ground", sandbox],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(sandbox: str) -> None:
    alone()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with listening(folder) as prey:
            print(json.dumps(asyncio.run(attempted(sandbox, prey))))


if __name__ == "__main__":
    main(sys.argv[1])
