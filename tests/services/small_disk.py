"""A disk so small that a test can fill it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["NoSmallDisk", "filled", "small_disk"]


class NoSmallDisk(Exception):
    """Mounting is not allowed here."""


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="onthedot-disk-"))
    place.chmod(0o755)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=777", "onthedot-test", str(place)]
    mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
    try:
        if mounted.returncode != 0:
            raise NoSmallDisk(f"no disk can be mounted: {mounted.stderr.strip()}")
        yield place
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", place], check=False)
        place.rmdir()


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """Not a byte left for as long as the block lasts."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    try:
        yield
    finally:
        ballast.unlink()
