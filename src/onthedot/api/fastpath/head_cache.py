"""Heads of requests that were in order: a client sends the same one again and again, but for two values.

What a head says depends on its bytes alone: which handler answers, whether the media type, the origin and the host are
ours. It is found out once, by the parser and the guard. Who holds the key it carries is asked each time. The values of
Idempotency-Key and Content-Length are new with each request; they are cut out, and the head is known by the rest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.service.aside import SMALL_BYTES

__all__ = ["Head", "HeadCache", "Known"]

KEPT = 256
LONGEST = 2048
_END = b"\r\n\r\n"
_VARIES = re.compile(rb"\r\n([Cc]ontent-[Ll]ength|[Ii]dempotency-[Kk]ey): ([^\r\n]*)(?=\r\n)")
_PLAIN = {  # a value that no parser could read as anything else
    b"content-length": re.compile(rb"[0-9]{1,6}"),
    b"idempotency-key": re.compile(rb"[!-~](?:[ -~]{0,198}[!-~])?"),
}


class Head(msgspec.Struct, frozen=True):
    """`route` answers it, to whoever holds the key `bearer`."""

    route: Any
    bearer: str | None
    keep_alive: bool


class Known(msgspec.Struct, frozen=True, gc=False):
    """A request under a head that is known."""

    head: Head
    idempotency_key: str | None
    body: bytes


class _Cut(msgspec.Struct, frozen=True, gc=False):
    """The first head in some bytes, without what varies; the values that were cut out; where the body begins."""

    rest: bytes
    values: dict[bytes, bytes]
    end: int


class HeadCache:
    """By their very bytes. Bounded: when it is full it starts again, so that nobody can fill the memory with heads."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> Known | None:
        """None unless `data` is one whole request under a head that is known, and nothing more."""
        if not self._known or (cut := _cut(data)) is None:
            return None
        head = self._known.get(cut.rest)
        if head is None or not _is_all(data, cut):
            return None
        key = cut.values.get(b"idempotency-key")
        return Known(head, None if key is None else key.decode("ascii"), data[cut.end :])

    def keep(self, data: bytes, headers: Sequence[tuple[bytes, bytes]], head: Head) -> None:
        """`data` is the request that was just answered, `headers` what the parser read in it. Where the two do not say
        the same of what varies, or its first empty line is not the end of its head, it is left alone."""
        cut = _cut(data)
        if cut is None or len(cut.rest) > LONGEST or not _is_all(data, cut):
            return
        parsed = [(name, value) for name, value in headers if name in _PLAIN]
        if len(parsed) != len(cut.values) or dict(parsed) != cut.values:
            return
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[cut.rest] = head


def _cut(data: bytes) -> _Cut | None:
    """None: there is no head, or what varies in it is given twice or written oddly."""
    end = data.find(_END) + len(_END)
    parts: list[bytes] = []
    values: dict[bytes, bytes] = {}
    start = 0
    for found in _VARIES.finditer(data, 0, end):
        name, value = found[1].lower(), found[2]
        if name in values or not _PLAIN[name].fullmatch(value):
            return None
        values[name] = value
        parts.append(data[start : found.start(2)])
        start = found.end(2)
    if b"content-length" not in values:
        return None
    parts.append(data[start:end])
    return _Cut(b"".join(parts), values, end)


def _is_all(data: bytes, cut: _Cut) -> bool:
    length = len(data) - cut.end
    return length <= SMALL_BYTES and int(cut.values[b"content-length"]) == length
