"""Free ports for servers that a test starts."""

from __future__ import annotations

import socket

__all__ = ["free_port"]

_kept: list[socket.socket] = []


def free_port() -> int:
    """A loopback port that is ours for the life of this process.

    It stays bound here, by a socket that never listens: the server a second from now can still listen there (both say
    SO_REUSEADDR), until then and afterwards it refuses connections, and nobody else is given it. Only looking which one
    is free, two test processes got the same now and then, and one of them took the other's node for its own.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    _kept.append(kept)
    port: int = kept.getsockname()[1]
    return port
