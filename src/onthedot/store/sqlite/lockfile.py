"""One process per database file: holding this lock proves that every other node of this store is dead.

What is locked is the file itself, not a name: a second process that comes by a symbolic or hard link or a bind mount
finds the lock too. It is an open-file-description lock (Linux) on one byte that SQLite never looks at. Those, unlike
`flock`, don't stand in the way of SQLite's own record locks, on NFS either; and unlike record locks they stay when some
other descriptor of the file is closed. A forked child, which would keep one alive when its parent was
killed, lets go first.

Beside it `<database>-lock` is locked by a record lock, and says who holds it: for versions and systems that know no
better, and for the message.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
from pathlib import Path

from onthedot.errors import StoreError, StoreInUse, StoreMoved

__all__ = ["DatabaseFile"]

LOCKED_BYTE = 1 << 62
"""Far behind what SQLite locks (512 bytes from 1 GiB on) and behind any page a file can have."""

Identity = tuple[int, int]
_held: dict[Identity, DatabaseFile] = {}


class DatabaseFile:
    """The file of a database, ours alone while this object is open.

    Closing any descriptor of a file drops the record locks that this process has on it, SQLite's included: `close` it
    after the last connection.
    """

    def __init__(self, database: Path, *, create: bool = True) -> None:
        """Not `create`: StoreError if there is no such file, and no lock file is left beside it."""
        self.path = database.absolute()
        self._beside = self.path.resolve()  # SQLite, too, follows links before it names what lies beside
        self._journal = self._beside.with_name(self._beside.name + "-wal")
        self._descriptor = self._wal = self._note = -1
        self.moved: str | None = None  # what has become of it
        self._refuse_ourselves()
        try:
            self._descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        except OSError as error:
            raise StoreError(f"can't open the SQLite store {database}: {error.strerror}") from error
        self.identity = _identity(os.fstat(self._descriptor))
        try:
            self._lock_itself()
            self._lock_name(create)
            self._refuse_replaced()
        except BaseException:
            self._let_go()
            raise
        _held[self.identity] = self

    def _refuse_ourselves(self) -> None:
        """Before anything is opened: to close it again would drop the locks of whoever has it open here."""
        try:
            if _identity(self.path.stat()) in _held:
                raise StoreInUse(_in_use(self.path, f"this process ({os.getpid()})"))
        except OSError:
            pass  # not there yet

    def _refuse_replaced(self) -> None:
        """Between our opening and our locking it. (Not the log: SQLite may still remove an old one.)"""
        if (replaced := self._look_at(self.path, self._descriptor)) is not None:
            raise StoreMoved(replaced)

    def _lock_itself(self) -> None:
        if not _lock_file(self._descriptor):
            raise StoreInUse(_in_use(self.path, self._holder()))

    def _lock_name(self, create: bool) -> None:
        name = self._beside.with_name(self._beside.name + "-lock")
        try:
            self._note = os.open(name, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
        except OSError as error:
            if not create and error.errno == errno.ENOENT:
                return
            raise StoreError(f"can't open the lock file {name}: {error.strerror}") from error
        try:
            _lock_record(self._note)
        except OSError:
            raise StoreInUse(_in_use(self.path, self._holder())) from None
        os.ftruncate(self._note, 0)
        os.pwrite(self._note, f"{os.getpid()}\n".encode(), 0)

    def _holder(self) -> str:
        """Who wrote its pid beside the file. By a hard link it stands beside the other name."""
        try:
            text = self._beside.with_name(self._beside.name + "-lock").read_text("ascii", "replace").strip()
        except OSError:
            text = ""
        return f"process {text}" if text else "another process"

    def check(self) -> None:
        """The name still leads to what we have open, and so does that of the write-ahead log: asked before each COMMIT
        (5 µs), because what is written to a file that was removed or replaced is lost. StoreMoved if not, from then on
        always: two who each hold half of a database must not go on."""
        if self.moved is None:
            self.moved = self._look()
        if self.moved is not None:
            raise StoreMoved(self.moved)

    def _look(self) -> str | None:
        found = self._look_at(self.path, self._descriptor)
        if found is None and self._wal >= 0:
            return self._look_at(self._journal, self._wal)
        if found is None and self._journal.exists():
            self._wal = os.open(self._journal, os.O_RDONLY | os.O_CLOEXEC)
        return found

    def _look_at(self, name: Path, descriptor: int) -> str | None:
        """The name against the open file, both asked now: on some file systems the numbers of a file don't last."""
        try:
            same = _identity(name.stat()) == _identity(os.fstat(descriptor))
        except FileNotFoundError:
            return _moved(name, "removed or renamed")
        except OSError:
            return None  # whatever it is, SQLite meets it too
        return None if same else _moved(name, "replaced by another file")

    def close(self) -> None:
        """The lock file stays: removing it would let two processes lock two files of the same name."""
        if _held.get(self.identity) is self:
            del _held[self.identity]
            if self._note >= 0:
                os.ftruncate(self._note, 0)
            self._let_go()

    def _let_go(self) -> None:
        for descriptor in (self._descriptor, self._wal, self._note):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._wal = self._note = -1

    def forget(self) -> None:
        """In a forked child: the lock is its parent's."""
        self._let_go()


def _forget_all() -> None:
    for file in _held.values():
        file.forget()
    _held.clear()


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _in_use(database: Path, holder: str) -> str:
    return (
        f"SQLite store {database} is in use by {holder}. Stop that process first, or use its API (--url). "
        "To run several processes, use a PostgreSQL store"
    )


def _moved(path: Path, what: str) -> str:
    return (
        f"{path} was {what} while it was in use. Further writes would be lost, so the node stops. "
        "Put the file back and restart. Always stop On the Dot before you move or restore a SQLite store"
    )


if sys.platform == "win32":
    import msvcrt

    def _lock_file(fd: int) -> bool:
        return True  # only the name is locked here

    def _lock_record(fd: int) -> None:
        os.lseek(fd, 1 << 20, os.SEEK_SET)  # beyond the pid, which others must be able to read
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    os.register_at_fork(after_in_child=_forget_all)

    def _lock_file(fd: int) -> bool:
        """False: somebody else has it. Where the system has no such locks, only the name is locked."""
        command = getattr(fcntl, "F_OFD_SETLK", None)
        if command is None:
            return True
        try:
            # struct flock: type, whence, start, length, pid (0 by rule)
            fcntl.fcntl(fd, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, LOCKED_BYTE, 1, 0))
        except OSError as error:
            return error.errno not in (errno.EAGAIN, errno.EACCES)
        return True

    def _lock_record(fd: int) -> None:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
