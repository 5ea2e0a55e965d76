"""Bytes that are handed to a process as open files: nothing touches a disk, and nobody else can read them."""

from __future__ import annotations

import fcntl
import os

__all__ = ["sealed_file"]

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def sealed_file(name: str, content: bytes) -> int:
    """A descriptor to read it from, which nobody can change. To be closed by the caller."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.lseek(descriptor, 0, os.SEEK_SET)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
