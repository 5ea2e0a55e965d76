"""Pages by keyset: the cursor says after which row to go on, and which question it belongs to.

A cursor is opaque to its users, but it comes back from outside: whatever it holds is checked, and one that belongs to
another filter is refused instead of giving a page that looks right.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from onthedot.errors import Invalid
from onthedot.store.queries import PAGE_BYTES

__all__ = [
    "LONGEST_PAGE",
    "Page",
    "check_limit",
    "fingerprint",
    "open_cursor",
    "seal_cursor",
    "within_bytes",
]

T = TypeVar("T")
LONGEST_PAGE = 500


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    items: list[T]
    next: str | None  # the cursor of the page after this; None: this is the last


def check_limit(limit: int) -> int:
    if not 1 <= limit <= LONGEST_PAGE:
        raise Invalid.one("limit", "out of range", given=limit, accepted=f"1 to {LONGEST_PAGE}")
    return limit


def within_bytes(sizes: Iterable[int], room: int = PAGE_BYTES) -> int:
    """How many of them a page with so much room takes: it ends with the one that fills it."""
    count = taken = 0
    for size in sizes:
        if taken >= room:
            break
        taken += size
        count += 1
    return count


def fingerprint(*question: Any) -> str:
    """What a list was asked, in 12 characters."""
    return hashlib.sha256(msgspec.json.encode(question)).hexdigest()[:12]


def seal_cursor(asked: str, *position: int | str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([asked, *position])).decode().rstrip("=")


def open_cursor(cursor: str, asked: str, kinds: Sequence[type]) -> list[Any]:
    """The position in a cursor that `seal_cursor(asked, …)` made, or Invalid."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=list[int | str])
    except (binascii.Error, msgspec.DecodeError, ValueError):
        found = []
    if len(found) != len(kinds) + 1 or any(type(part) is not kind for part, kind in zip(found[1:], kinds, strict=True)):
        raise Invalid.one("cursor", "not a valid cursor", given=cursor[:100], accepted="`next` of the previous page")
    if found[0] != asked:
        raise Invalid.one(
            "cursor", "belongs to a different list", given=cursor[:100], accepted="the filters of the previous page"
        )
    if not all(map(_storable, found)):
        raise Invalid.one("cursor", "not a valid cursor", given=cursor[:100], accepted="`next` of the previous page")
    return found[1:]


def _storable(part: int | str) -> bool:
    """Whether a store can be asked for it: PostgreSQL takes no NUL."""
    return -(2**63) <= part < 2**63 if isinstance(part, int) else "\x00" not in part
