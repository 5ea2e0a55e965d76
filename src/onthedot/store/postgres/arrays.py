"""The arrays that statements take and give, told to each new connection.

Before its first `bigint[]` and its first `boolean[]` asyncpg asks the server what that is, on every connection anew:
11 to 15 ms of the server's CPU each time, as much as 500 runs, and the first claim on a new connection waits for it.
These types have had the same numbers in every PostgreSQL there is.

And asyncpg asks of each element whether it is a list itself: the seven arrays of a finish took 2.3 µs a run, of the 19
that a run took in all. Written here they take 0.6, and keep the loop from what is due for a quarter of the time.

asyncpg has no public function for either: should the ones we take be closed one day, it does as before.
"""

from __future__ import annotations

import contextlib
import sys
from array import array
from collections.abc import Sequence
from itertools import chain
from struct import Struct
from typing import Any

__all__ = ["bigints", "bigints_of", "booleans", "booleans_of", "tell_arrays", "texts", "texts_of"]

_COLUMNS = ("basetype", "range_subtype", "attrtypoids", "attrnames", "basetype_name", "range_subtype_name")
_ARRAY = {**dict.fromkeys(_COLUMNS), "ns": "pg_catalog", "kind": b"b", "elemdelim": b","}
_KNOWN = [
    {**_ARRAY, "oid": 1016, "name": "_int8", "elemtype": 20, "elemtype_name": "bigint"},
    {**_ARRAY, "oid": 1000, "name": "_bool", "elemtype": 16, "elemtype_name": "boolean"},
]
_BOOLEAN, _BIGINT, _TEXT = 16, 20, 25

# What the server sends and takes: dimensions, whether there are nulls, the type of the elements; for the one dimension
# its length and its lower bound; then each element behind its length, which is -1 for a null. All in network order.
_EMPTY = Struct(">iii")
_HEAD = Struct(">iiiii")
_LENGTH = Struct(">i")
_SIZED_BIGINT = Struct(">iq")
_SIZED_BOOLEAN = Struct(">i?")
_NULL = _LENGTH.pack(-1)
_IS_LITTLE = sys.byteorder == "little"


async def tell_arrays(connection: Any) -> None:
    """For a pool's `init`."""
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        settings = connection._protocol.get_settings()
        with contextlib.suppress(AttributeError, TypeError):
            for oid, name, encoder, decoder in (
                (1000, "_bool", booleans, booleans_of),
                (1009, "_text", texts, texts_of),
                (1016, "_int8", bigints, bigints_of),
            ):
                settings.add_python_codec(oid, name, "pg_catalog", [], "scalar", encoder, decoder, "binary")
        settings.register_data_types(_KNOWN)  # after these, which make it forget what it was told


def bigints(values: Sequence[int | None]) -> bytes:
    """`bigint[]` as the server takes it."""
    count = len(values)
    if not count:
        return _EMPTY.pack(0, 0, _BIGINT)
    try:
        packed = array("q", values)  # type: ignore[type-var]  # a null among them is the TypeError
    except TypeError:
        elements = [_NULL if value is None else _SIZED_BIGINT.pack(8, value) for value in values]
        return _HEAD.pack(1, 1, _BIGINT, count, 1) + b"".join(elements)
    if _IS_LITTLE:
        packed.byteswap()
    raw, sized = packed.tobytes(), bytearray(12 * count)
    sized[3::12] = b"\x08" * count  # each behind its length, which is 8: all first bytes, all second bytes, …
    for nth in range(8):
        sized[4 + nth :: 12] = raw[nth::8]
    return _HEAD.pack(1, 0, _BIGINT, count, 1) + sized


def bigints_of(data: bytes) -> list[int | None]:
    """`bigint[]` as the server gives it."""
    dimensions, nulls, _ = _EMPTY.unpack_from(data)
    if dimensions != 1 or nulls:
        return [None if element is None else int.from_bytes(element, signed=True) for element in _elements(data)]
    raw = bytearray((len(data) - _HEAD.size) // 12 * 8)
    for nth in range(8):
        raw[nth::8] = data[_HEAD.size + 4 + nth :: 12]
    found = array("q", raw)
    if _IS_LITTLE:
        found.byteswap()
    return list(found)


def booleans(values: Sequence[bool | None]) -> bytes:
    """`boolean[]` as the server takes it."""
    count = len(values)
    if not count:
        return _EMPTY.pack(0, 0, _BOOLEAN)
    if None in values:
        elements = [_NULL if value is None else _SIZED_BOOLEAN.pack(1, value) for value in values]
        return _HEAD.pack(1, 1, _BOOLEAN, count, 1) + b"".join(elements)
    sized = bytearray(5 * count)
    sized[3::5] = b"\x01" * count
    sized[4::5] = bytes(values)  # type: ignore[arg-type]  # no null is among them
    return _HEAD.pack(1, 0, _BOOLEAN, count, 1) + sized


def booleans_of(data: bytes) -> list[bool | None]:
    """`boolean[]` as the server gives it."""
    return [None if element is None else element != b"\0" for element in _elements(data)]


def texts(values: Sequence[str | None]) -> bytes:
    """`text[]` as the server takes it."""
    count = len(values)
    if not count:
        return _EMPTY.pack(0, 0, _TEXT)
    try:
        encoded = list(map(str.encode, values))  # type: ignore[arg-type]  # a null among them is the TypeError
    except TypeError:
        elements = [_NULL if value is None else _sized(value.encode()) for value in values]
        return _HEAD.pack(1, 1, _TEXT, count, 1) + b"".join(elements)
    lengths = map(_LENGTH.pack, map(len, encoded))
    return _HEAD.pack(1, 0, _TEXT, count, 1) + b"".join(chain.from_iterable(zip(lengths, encoded, strict=True)))


def _sized(text: bytes) -> bytes:
    return _LENGTH.pack(len(text)) + text


def texts_of(data: bytes) -> list[str | None]:
    """`text[]` as the server gives it."""
    return [None if element is None else str(element, "utf-8") for element in _elements(data)]


def _elements(data: bytes) -> list[bytes | None]:
    dimensions, _, _ = _EMPTY.unpack_from(data)
    if dimensions > 1:
        raise ValueError(f"an array of {dimensions} dimensions: no statement of ours has one")
    found: list[bytes | None] = []
    at = _HEAD.size
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        found.append(None if size < 0 else data[at : at + size])
        at += max(size, 0)
    return found
