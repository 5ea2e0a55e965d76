"""One webhook on its way: from the request to what is made of the answer, or until it is stopped.

On a kept connection no task and no future is needed: the connection calls back with the answer, and this with the
outcome. Only to open a new connection somebody has to wait; then it is asked once more whether the call may begin. (A
node frozen for twelve seconds in the midst of a hundred of these sent 84 runs that had long ceased to be its own.)
"""

from __future__ import annotations

import asyncio

from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.targets.contract import NOT_BEGUN, Call, Cause, Done, Ended, Stop
from onthedot.targets.exhaustion import Lacking, lack_of
from onthedot.targets.webhook.destination import Destination
from onthedot.targets.webhook.http1.connection import ReceiverConnection, Unanswered
from onthedot.targets.webhook.http1.connections import ConnectionPool
from onthedot.targets.webhook.http1.connector import EgressRefused
from onthedot.targets.webhook.http1.response import WebhookResponse
from onthedot.targets.webhook.json_answer import add_result
from onthedot.targets.webhook.request import request_of
from onthedot.targets.webhook.verdict import classify, snippet

__all__ = ["Exchange", "failed", "refused"]


class Exchange:
    """Opening a connection is part of the attempt: its time-out counts from the start, though nothing has left yet."""

    __slots__ = ("_at", "_call", "_connection", "_done", "_pool", "_task")

    def __init__(self, pool: ConnectionPool, call: Call, at: float, done: Done) -> None:
        self._pool = pool
        self._call = call
        self._at = at
        self._done: Done | None = done
        self._connection: ReceiverConnection | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, target: WebhookTarget, place: Destination, path: str, *, agent: str) -> None:
        """What can't be sent raises before anything is opened."""
        request = request_of(self._call, target, place, path, agent=agent, now_ms=self._call.time_at(self._at))
        connection = self._pool.take(place.origin)
        if connection is None:
            self._call.begun(self._at)
            self._task = asyncio.get_running_loop().create_task(self._connect(target, place, path, agent))
        elif self._call.may_begin():
            self._call.begun(self._at)
            self._ask(connection, request, is_head=target.method == "HEAD")
        else:
            self._pool.put(connection)
            self._end_soon(NOT_BEGUN)

    def answer_soon(self, outcome: Outcome) -> None:
        """Without sending anything."""
        self._end_soon(Ended(outcome, self._at))

    def stop(self, cause: Cause) -> Stop:
        """Closes the connection if there is one: an answer that comes now is nobody's."""
        if self._done is None:
            return Stop.ENDED
        if self._connection is None and cause != "timeout":
            self._done = None
            if self._task is not None:
                self._task.cancel()
            return Stop.NOT_BEGUN
        if cause == "recalled":
            return Stop.STOPPING
        self._call.stopped = cause
        if self._connection is not None:
            self._connection.drop()
        elif self._task is not None:
            self._task.cancel()
        self._end(Ended(None, self._at))
        return Stop.ENDED

    def recorded(self) -> None:
        """Nothing is left of it."""

    async def _connect(self, target: WebhookTarget, place: Destination, path: str, agent: str) -> None:
        """The request is dated when the connection is open, which may take minutes: receivers refuse an old one."""
        try:
            connection = await self._pool.connect(
                place.origin, is_address=place.address is not None, tenant=self._call.tenant
            )
        except EgressRefused as error:
            self._end(Ended(refused(error), self._at))
        except Exception as error:
            if (lack := str(error) if isinstance(error, Lacking) else lack_of(error)) is None:
                self._end(Ended(failed(error), self._at))
            else:
                self._call.lacks(lack)
                self._end(NOT_BEGUN)
        else:
            if self._call.may_begin():
                now_ms = self._call.time_at(asyncio.get_running_loop().time())
                request = request_of(self._call, target, place, path, agent=agent, now_ms=now_ms)
                self._ask(connection, request, is_head=target.method == "HEAD")
            else:
                connection.close()
                self._end(NOT_BEGUN)

    def _ask(self, connection: ReceiverConnection, request: bytes, *, is_head: bool) -> None:
        self._connection = connection
        connection.ask(request, self._answered, is_head=is_head)

    def _answered(self, answer: WebhookResponse | Unanswered) -> None:
        connection, self._connection = self._connection, None
        if isinstance(answer, Unanswered):
            self._end(Ended(failed(answer), self._at))
            return
        assert connection is not None
        self._pool.put(connection)  # before anybody is told: the next one may be sent from there
        outcome = classify(
            answer.status,
            snippet(answer.body),
            retry_after=answer.retry_after,
            location=answer.location,
            delivery=answer.delivery,
            now_ms=0 if answer.retry_after is None else self._call.time_at(asyncio.get_running_loop().time()),
        )
        if answer.is_json and outcome.ok:
            add_result(outcome.detail, answer.body)
        self._end(Ended(outcome, self._at))

    def _end_soon(self, ended: Ended) -> None:
        asyncio.get_running_loop().call_soon(self._end, ended)

    def _end(self, ended: Ended) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(ended)


def refused(why: object) -> Outcome:
    """For good: the same would be refused again."""
    return Outcome(kind="refused", error=str(why))


def failed(why: Exception) -> Outcome:
    return Outcome(kind="error", retryable=True, error=(str(why) or type(why).__name__)[:1000])
