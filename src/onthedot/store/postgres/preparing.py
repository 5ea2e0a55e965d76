"""Statements of a transaction are prepared before it begins, as far as is known from the last time.

Between preparing a statement and executing it the server waits for us, but the transaction does not count as idle: no
`idle_in_transaction_session_timeout` ends it. A node that was frozen there, right after a restart of the database, held
locks on statistics of jobs: for 13 s, until it was woken, no node could record a result. The first time, when nothing
is known yet, it is ended when the node is declared lost (see `process_name`), and from PostgreSQL 17 on by
`transaction_timeout`. (`statement_timeout` does not end it.)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import unwrap
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

__all__ = ["Preparer"]

Body = Callable[..., Awaitable[Any]]
MOST = 50
"""Statements that are known of one transaction; lists with many filters have more, and hold no locks."""


class Preparer:
    def __init__(self) -> None:
        self._used: dict[CodeType, dict[str, None]] = {}
        self._prepared: WeakKeyDictionary[Any, dict[CodeType, int]] = WeakKeyDictionary()

    def used_by(self, body: Body) -> dict[str, None]:
        """Where the transaction notes the texts that it executes."""
        return self._used.setdefault(_code_of(body), {})

    async def prepare(self, connection: Any, body: Body, timeout: float) -> None:
        """What is prepared already costs nothing: on each connection it is looked at when there is something new."""
        code = _code_of(body)
        used = self._used.get(code)
        if not used:
            return
        one = connection._con  # behind the pool's stand-in, which is another one each time
        prepared = self._prepared.setdefault(one, {})
        if prepared.get(code) == len(used):
            return
        for text in list(used)[:MOST]:
            await one._get_statement(text, timeout)  # asyncpg offers no other way into its own cache
        prepared[code] = len(used)


def _code_of(body: Body) -> CodeType:
    """The same for each closure of one method, and through what wraps it."""
    inner: Any = unwrap(body)
    if isinstance(inner, partial):
        inner = inner.func
    code: CodeType = inner.__code__
    return code
