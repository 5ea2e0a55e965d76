"""One webhook on its way: from the request to what is made of the answer, or until it is withdrawn.

On a kept connection no task and no future is needed: the connection calls back with the answer, and this with the
outcome. Only to open a new connection somebody has to wait; then it is asked once more whether the call may begin. (A
node frozen for twelve seconds in the midst of a hundred of these sent 84 runs that had long ceased to be its own.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from onthedot.model.run import Outcome
from onthedot.targets.contract import Call, Lacking
from onthedot.targets.exhaustion import lack_of
from onthedot.targets.webhook.destination import Destination
from onthedot.targets.webhook.http1.connection import ReceiverConnection, Unanswered
from onthedot.targets.webhook.http1.connections import ConnectionPool
from onthedot.targets.webhook.http1.connector import EgressRefused
from onthedot.targets.webhook.http1.response import WebhookResponse
from onthedot.targets.webhook.verdict import judge, snippet

__all__ = ["Sending", "failed", "refused"]


class Sending:
    """Tells `ended` once, never from within `begin` or `end_soon`, and not at all after `withdraw`."""

    __slots__ = ("_call", "_connection", "_ended", "_pool", "_task")

    def __init__(self, pool: ConnectionPool, call: Call, ended: Callable[[Outcome | None], None]) -> None:
        self._pool = pool
        self._call = call
        self._ended: Callable[[Outcome | None], None] | None = ended
        self._connection: ReceiverConnection | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, place: Destination, request: bytes, *, is_head: bool) -> None:
        connection = self._pool.take(place.origin)
        if connection is not None:
            self._ask(connection, request, is_head)
        else:
            self._task = asyncio.get_running_loop().create_task(self._connect(place, request, is_head))

    def end_soon(self, outcome: Outcome) -> None:
        asyncio.get_running_loop().call_soon(self._end, outcome)

    def withdraw(self) -> None:
        """Closes the connection if there is one: an answer that comes now is nobody's."""
        self._ended = None
        if self._connection is not None:
            self._connection.drop()
        elif self._task is not None:
            self._task.cancel()

    async def _connect(self, place: Destination, request: bytes, is_head: bool) -> None:
        try:
            connection = await self._pool.connect(
                place.origin, is_address=place.address is not None, tenant=self._call.tenant
            )
        except EgressRefused as error:
            self._end(refused(error))
        except Exception as error:
            if (lack := str(error) if isinstance(error, Lacking) else lack_of(error)) is None:
                self._end(failed(error))
            else:
                self._call.lacks(lack)
                self._end(None)
        else:
            if self._call.may_begin():
                self._ask(connection, request, is_head)
            else:
                connection.close()
                self._end(None)

    def _ask(self, connection: ReceiverConnection, request: bytes, is_head: bool) -> None:
        self._connection = connection
        connection.ask(request, self._answered, is_head=is_head)

    def _answered(self, answer: WebhookResponse | Unanswered) -> None:
        connection, self._connection = self._connection, None
        if isinstance(answer, Unanswered):
            self._end(failed(answer))
            return
        assert connection is not None
        self._pool.put(connection)  # before anybody is told: the next one may be sent from there
        outcome = judge(
            answer.status,
            snippet(answer.body),
            retry_after=answer.retry_after,
            location=answer.location,
            now_ms=0 if answer.retry_after is None else self._call.now_ms(),
        )
        self._end(outcome)

    def _end(self, outcome: Outcome | None) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(outcome)


def refused(why: object) -> Outcome:
    """For good: the same would be refused again."""
    return Outcome(kind="refused", error=str(why))


def failed(why: Exception) -> Outcome:
    return Outcome(kind="error", retryable=True, error=(str(why) or type(why).__name__)[:1000])
