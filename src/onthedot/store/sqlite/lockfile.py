"""One process per file: holding this lock proves that every other node of this store is dead.

A record lock (fcntl), because a forked worker must not keep it alive when its parent was killed; those are blind to a
second opening within the same process, so that is remembered here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from onthedot.errors import StoreError, StoreInUse

__all__ = ["LockFile"]

_held: set[Path] = set()


class LockFile:
    """`<database>-lock`, locked while this object is open. Its text is the pid of who holds it."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + "-lock").absolute()
        self._key = self.path.parent.resolve() / self.path.name
        if self._key in _held:
            raise StoreInUse(_in_use(database, f"this process ({os.getpid()})"))
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"the lock file {self.path} can't be opened: {error.strerror}") from error
        try:
            _lock(self._fd)
        except OSError:
            holder = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise StoreInUse(_in_use(database, f"process {holder}" if holder else "another process")) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        _held.add(self._key)

    def close(self) -> None:
        """The file stays: removing it would let two processes lock two files of the same name."""
        if self._key in _held:
            _held.discard(self._key)
            os.ftruncate(self._fd, 0)
            os.close(self._fd)


def _in_use(database: Path, holder: str) -> str:
    return (
        f"the SQLite store {database} is in use by {holder}. Stop it first, or talk to it over its API (--url); "
        "several processes at once need a PostgreSQL store"
    )


if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, 1 << 20, os.SEEK_SET)  # beyond the pid, which others must be able to read
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
