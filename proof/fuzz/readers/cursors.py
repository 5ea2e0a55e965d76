"""A cursor that comes back from outside: Invalid, or a position that any store can be asked for."""

from __future__ import annotations

import base64
import random

from onthedot.errors import Invalid
from onthedot.store.paging import open_cursor, seal_cursor
from proof.fuzz.reader import Reader, Wrong

__all__ = ["CURSORS"]

ASKED = "0123456789ab"
KINDS: tuple[tuple[type, ...], ...] = ((int,), (int, str), (str, int), (str,))


def check(raw: bytes, rng: random.Random) -> bool:
    """Half of them is changed before it is sealed: most changes of the outside would only break the seal."""
    text = base64.urlsafe_b64encode(raw).decode().rstrip("=") if rng.random() < 0.7 else raw.decode("latin-1")
    kinds = KINDS[rng.randrange(len(KINDS))]
    try:
        position = open_cursor(text, ASKED, kinds)
    except Invalid:
        return False
    if [type(part) for part in position] != list(kinds):
        raise Wrong(f"{position} is not {kinds}")
    for part in position:
        if isinstance(part, int) and not -(2**63) <= part < 2**63:
            raise Wrong(f"{part} is more than 64 bits")
        if isinstance(part, str) and ("\x00" in part or part.encode("utf-8", "ignore").decode() != part):
            raise Wrong(f"{part!r} can't be stored")
    if open_cursor(seal_cursor(ASKED, *position), ASKED, kinds) != position:
        raise Wrong(f"sealed again it is another: {position}")
    return True


CURSORS = Reader(
    "cursors",
    check,
    (
        b'["0123456789ab",17]',
        b'["0123456789ab",17,"name"]',
        b'["0123456789ab","2026-01-01T00:00:00.000Z",9223372036854775807]',
        b'["0123456789ab","key"]',
        b'["ffffffffffff",1]',
        seal_cursor(ASKED, 17, "name").encode(),
    ),
    (
        b'"', b",", b"[", b"]", b"\\u0000", b"\\ud800", b"-", b"_", b"=", b"+", b"true", b"null", b"1.5", b"1e9",
        b"{}", ASKED.encode(),
    ),
)  # fmt: skip
