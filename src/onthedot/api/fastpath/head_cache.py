"""Heads of requests that were in order: on a kept connection a client sends the same one again and again.

What a head says depends on its bytes alone: which handler answers, how long the body is, whether the media type, the
origin and the host are ours. It is found out once, by the parser and the guard. Who holds the key it carries is asked
each time.
"""

from __future__ import annotations

from typing import Any

__all__ = ["Head", "HeadCache"]

KEPT = 256
LONGEST = 2048
_END = b"\r\n\r\n"


class Head:
    """`route` answers it; its body has `length` bytes."""

    __slots__ = ("bearer", "keep_alive", "length", "route")

    def __init__(self, route: Any, length: int, bearer: str | None, keep_alive: bool) -> None:
        self.route = route
        self.length = length
        self.bearer = bearer
        self.keep_alive = keep_alive


class HeadCache:
    """By their very bytes. Bounded: when it is full it starts again, so that nobody can fill the memory with heads."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """The head and the body, if `data` is one whole request under a head that is known, and nothing more."""
        end = data.find(_END) + 4
        head = self._known.get(data[:end])
        if head is None or len(data) != end + head.length:
            return None
        return head, data[end:]

    def keep(self, data: bytes, head: Head) -> None:
        """`data` is the request that was just answered under this head. Where its first empty line is not the end of
        its head, it is left alone."""
        end = data.find(_END) + 4
        if len(data) != end + head.length or end > LONGEST:
            return
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[data[:end]] = head
