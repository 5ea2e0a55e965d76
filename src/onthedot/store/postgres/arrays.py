"""The arrays that statements take, told to each new connection.

Before its first `bigint[]` and its first `boolean[]` asyncpg asks the server what that is, on every connection anew:
11 to 15 ms of the server's CPU each time, as much as 500 runs, and the first claim on a new connection waits for it.
These types have had the same numbers in every PostgreSQL there is. asyncpg has no public door for this: should the one
we take be closed one day, it asks as before.
"""

from __future__ import annotations

import contextlib
from typing import Any

__all__ = ["tell_arrays"]

_COLUMNS = ("basetype", "range_subtype", "attrtypoids", "attrnames", "basetype_name", "range_subtype_name")
_ARRAY = {**dict.fromkeys(_COLUMNS), "ns": "pg_catalog", "kind": b"b", "elemdelim": b","}
_KNOWN = [
    {**_ARRAY, "oid": 1016, "name": "_int8", "elemtype": 20, "elemtype_name": "bigint"},
    {**_ARRAY, "oid": 1000, "name": "_bool", "elemtype": 16, "elemtype_name": "boolean"},
]


async def tell_arrays(connection: Any) -> None:
    """For a pool's `init`."""
    with contextlib.suppress(AttributeError, KeyError, TypeError):
        connection._protocol.get_settings().register_data_types(_KNOWN)
