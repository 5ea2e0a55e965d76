"""Free ports for servers that a test starts."""

from __future__ import annotations

import socket

__all__ = ["free_port"]

_given: set[int] = set()


def free_port() -> int:
    """A loopback port nobody listens on now, never the same one twice in this process."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port
