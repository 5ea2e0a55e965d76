"""Objects as files of a directory: written beside their place, synced, and moved there in one step."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from onthedot.errors import ObjectMissing, ObjectStoreUnavailable
from onthedot.objects.contract import ObjectStore, checked

__all__ = ["DirectoryObjects"]


class DirectoryObjects(ObjectStore):
    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    def __str__(self) -> str:
        return str(self.directory)

    async def put(self, name: str, content: bytes) -> None:
        await asyncio.to_thread(self._put, self._path(name), content)

    async def get(self, name: str) -> bytes:
        return await asyncio.to_thread(self._get, self._path(name))

    async def exists(self, name: str) -> bool:
        return await asyncio.to_thread(self._path(name).exists)

    async def delete(self, name: str) -> None:
        await asyncio.to_thread(self._delete, self._path(name))

    def _path(self, name: str) -> Path:
        return self.directory / checked(name)

    def _put(self, path: Path, content: bytes) -> None:
        with _told(path):
            self._make(path.parent)
            beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
            try:
                with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(path)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
            _sync(path.parent)

    def _make(self, folder: Path) -> None:
        """A new directory is an entry of its parent, which has to reach the disk, too."""
        if folder.is_dir():
            return
        self._make(folder.parent)
        with contextlib.suppress(FileExistsError):  # another node was first
            folder.mkdir(mode=0o700)
        _sync(folder.parent)

    def _get(self, path: Path) -> bytes:
        with _told(path):
            return path.read_bytes()

    def _delete(self, path: Path) -> None:
        with _told(path), contextlib.suppress(FileNotFoundError):
            path.unlink()
            _sync(path.parent)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ObjectMissing(f"object {path} not found") from None
    except OSError as error:
        raise ObjectStoreUnavailable(f"the object store is unavailable: {path}: {error.strerror}") from error


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
