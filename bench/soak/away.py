"""What a client gets to see of a database that goes away."""

from __future__ import annotations

import asyncpg

__all__ = ["AWAY"]

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # "cannot switch to state 15": the connection broke while a time-out cancelled it
)
