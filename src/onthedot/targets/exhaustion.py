"""What this machine has run out of, if that is why something failed.

No descriptor, port, memory, thread or process to be had says nothing about the run: nothing of it has left. So it is
not a try; the call was not begun, and goes back.
"""

from __future__ import annotations

import errno
import socket
from typing import Any

from onthedot import descriptors

__all__ = ["NO_PORTS", "Lacking", "lack_of", "ports_are_gone"]


class Lacking(Exception):
    """This machine has run out of what it takes to begin; the message says of what."""


_LACKS = {
    errno.EMFILE: "too many open files in this process",
    errno.ENFILE: "too many open files on this machine",
    errno.ENOBUFS: "out of socket buffer space on this machine",
    errno.ENOMEM: "out of memory on this machine",
}
NO_PORTS = "out of ephemeral ports on this machine"
_NO_PROCESS = "out of processes or threads on this machine"


def lack_of(error: BaseException, *, starting: bool = False, looking_up: bool = False) -> str | None:
    """Why there was no room here; None: it failed for another reason. `starting`: a process or a thread. `looking_up` a
    name, which fails in many ways without a descriptor and never says so."""
    if isinstance(error, MemoryError):
        return _LACKS[errno.ENOMEM]
    if looking_up and descriptors.none_left():
        return _LACKS[errno.EMFILE]
    if isinstance(error, OSError):
        if starting and error.errno == errno.EAGAIN:
            return _NO_PROCESS
        return _LACKS.get(error.errno or 0)
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return _NO_PROCESS
    return None


def ports_are_gone(error: OSError, family: int, address: tuple[Any, ...]) -> bool:
    """EADDRNOTAVAIL has two meanings: all ports are taken, or this machine has no address from which that one can be
    reached. The second is true of UDP as well, which has ports of its own and sends nothing when it is connected."""
    if error.errno != errno.EADDRNOTAVAIL:
        return False
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
    except OSError:
        return False
    return True
