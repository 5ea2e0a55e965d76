"""Large JSON, cut into items: the same items that a parser finds, or a refusal."""

from __future__ import annotations

import json
import random
from typing import Any

from onthedot.errors import TooLarge, Unreadable
from onthedot.model.portions import after_list, array_items, line_items, object_parts
from proof.fuzz.reader import Reader, Wrong

__all__ = ["BODIES"]


def check(raw: bytes, _: random.Random) -> bool:
    list(line_items(raw))
    try:
        parsed: Any = json.loads(raw.decode())  # of bytes it would guess UTF-16 where there are NULs
    except (ValueError, RecursionError):
        parsed = None
    cut = _cut(raw)
    if isinstance(parsed, list) and _plain(parsed):
        if cut is None or len(cut) != len(parsed) or [json.loads(item) for item in cut] != parsed:
            raise Wrong(f"cut into {cut}")
        return True
    _take_apart(raw, parsed)
    return False


def _cut(raw: bytes) -> list[bytes] | None:
    ends: list[int] = []
    try:
        items = list(array_items(raw, 0, ends.append))
        after_list(raw, ends[0])
    except (Unreadable, TooLarge):
        return None
    return items


def _take_apart(raw: bytes, parsed: Any) -> None:
    try:
        parts = list(object_parts(raw, b'"jobs"'))
    except (Unreadable, TooLarge):
        if isinstance(parsed, dict) and _plain(parsed):
            raise Wrong("an object is not taken apart") from None
        return
    if isinstance(parsed, dict) and len({name for name, _ in parts if name}) == len([n for n, _ in parts if n]):
        items = [json.loads(value) for name, value in parts if name is None]
        if isinstance(parsed.get("jobs"), list) and items and items != parsed["jobs"]:
            raise Wrong(f"cut into {items}")


def _plain(value: Any) -> bool:
    """NaN is not itself, and the standard parser takes it."""
    return value == value and "NaN" not in repr(value)


BODIES = Reader(
    "bodies",
    check,
    (
        b'[{"key": "a", "n": [1, 2.5e3, null]}, "te\\"xt", 3, [], {}]',
        b'{"source": "f", "jobs": [{"key": "a"}, {"key": "b\\\\"}], "prune": true}',
        b'{"a": 1}\n\n{"b": "\\u00fc"}\n',
        b"[]",
        b' [ 1 , "," , "]" ] ',
    ),
    (
        b"[", b"]", b"{", b"}", b'"', b"\\", b'\\"', b",", b":", b'"jobs"', b"null", b"-0", b"1e5", b" ", b"\n",
        b"\\u0041", b'"jobs":[', b"[" * 30,
    ),
)  # fmt: skip
