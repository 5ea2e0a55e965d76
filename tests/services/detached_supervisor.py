"""What runs one piece of detached work: a session of its own, nobody's child, its end written into its directory.

Started as often as anybody likes for the same directory: only the first goes on. Without the packages of the project,
and without its imports, so that it is there in a moment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["claim", "put", "start_time"]


def start_time(pid: int) -> str | None:
    """When the kernel started it, in its own measure; None: it is not there, or only waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def put(path: Path, text: str) -> None:
    """All of it or nothing."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text)
    new.rename(path)


def claim(directory: Path, owner: str) -> bool:
    """Whether this work is ours to do: once, whoever asks."""
    mine = directory / f"pid.{os.getpid()}"
    mine.write_text(owner)
    try:
        os.link(mine, directory / "pid")
    except FileExistsError:
        return False
    finally:
        mine.unlink()
    return True


def main(directory: Path, argv: list[str]) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    if not claim(directory, f"{os.getpid()} {start_time(os.getpid())}"):
        return
    put(directory / "started", repr(time.monotonic()))
    with (directory / "output").open("ab") as output:
        code = subprocess.call(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=directory)
    put(directory / "exit", str(code))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
