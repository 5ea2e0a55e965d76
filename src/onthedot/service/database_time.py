"""What the database's clock shows, without asking it for every request.

Due times are decided by the database's clock, so `at` and "no slot left" are judged by it too. One answer serves for a
second: the monotonic clock carries it on in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from onthedot.clock import Clock

__all__ = ["DatabaseTime"]

GOOD_FOR = 1.0


class DatabaseTime:
    def __init__(self, ask: Callable[[], Awaitable[int]], clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._answer: int | None = None
        self._asked_at = 0.0

    def known(self) -> int | None:
        """What `now` would say without asking; None: it would ask."""
        if self._answer is None or self._clock.monotonic() - self._asked_at >= GOOD_FOR:
            return None
        return self.carried()

    def carried(self) -> int:
        """The last answer and the time since, however long that is; it must have been asked before."""
        assert self._answer is not None
        return self._answer + int((self._clock.monotonic() - self._asked_at) * 1000)

    async def now(self) -> int:
        """Milliseconds; never ahead of the database by more than a clock drifts in a second."""
        sent = self._clock.monotonic()
        if self._answer is None or sent - self._asked_at >= GOOD_FOR:
            self._answer = await self._ask()
            self._asked_at = self._clock.monotonic()
            return self._answer
        return self._answer + int((sent - self._asked_at) * 1000)
