"""A disk so small that a test can fill it.

Root mounts it. Anybody else may mount in a namespace of their own, where the kernel allows that: `in_own_namespace`
runs the tests marked `small_disk` there, in a pytest of their own.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

__all__ = ["MAY_MOUNT", "NoSmallDisk", "filled", "in_own_namespace", "small_disk"]

INSIDE = "ONTHEDOT_TEST_NAMESPACE"
MAY_MOUNT = os.geteuid() == 0 or INSIDE in os.environ
DETACH = 2


class NoSmallDisk(Exception):
    """Mounting is not allowed here."""


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="onthedot-disk-"))
    place.chmod(0o755)
    kernel = ctypes.CDLL(None, use_errno=True)  # mount(8) would ask who we are, the kernel asks what we may
    options = f"size={megabytes}m,mode=777".encode()
    mounted = kernel.mount(b"onthedot-test", bytes(place), b"tmpfs", 0, options) == 0
    try:
        if not mounted:
            raise NoSmallDisk(f"no disk can be mounted: {os.strerror(ctypes.get_errno())}")
        yield place
    finally:
        if mounted:
            kernel.umount2(bytes(place), DETACH)
        place.rmdir()


def in_own_namespace(tests: Path) -> subprocess.CompletedProcess[str]:
    """The tests in `tests` that fill a disk, by a pytest that may mount what only it sees."""
    inner = [sys.executable, "-m", "pytest", "-m", "small_disk", "-q", "-n0", "-p", "no:cacheprovider", str(tests)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        ["unshare", "--user", "--mount", "--map-current-user", "--keep-caps", *inner],
        env={**environ, INSIDE: "1"},
        check=False,
        capture_output=True,
        text=True,
    )


@asynccontextmanager
async def filled(place: Path) -> AsyncIterator[None]:
    """Not a byte left for as long as the block lasts.

    Filled in a thread: the receiver of a test lives on its loop, and if that stands still for the seconds this takes on
    a busy machine, webhooks rightly time out and are tried again.
    """
    ballast = place / "ballast"
    try:
        await asyncio.to_thread(_fill, ballast)
        yield
    finally:
        ballast.unlink()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
