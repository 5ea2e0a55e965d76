"""Free ports for servers that a test starts."""

from __future__ import annotations

import socket
import sys

__all__ = ["free_port"]

_kept: list[socket.socket] = []


def free_port() -> int:
    """A loopback port that is ours for the life of this process.

    It stays bound here, by a socket that never listens: the server a second from now can still listen there (both say
    SO_REUSEADDR), until then and afterwards it refuses connections, and nobody else is given it. Had we only looked
    which one is free, two test processes could get the same, and one take the other's node for its own. Elsewhere than
    on Linux no two sockets may be bound to one port: there it is only looked for.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    port: int = kept.getsockname()[1]
    if sys.platform == "linux":
        _kept.append(kept)
    else:
        kept.close()
    return port
