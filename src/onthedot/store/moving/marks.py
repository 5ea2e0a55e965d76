"""What both stores know of a move: which one it is, how far it has come, and the words that keep nodes from serving.

The words stand in `meta` as a migration that nobody can live with, so that nodes of older versions refuse the store,
too. The rest stands in `installation`, in the target it is written with each portion of rows, in one transaction.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.store.driver import Driver, Transaction

__all__ = ["MOVE", "MoveState", "clear_state", "find_mark", "read_state", "write_state"]

MOVE = "move"
"""The row of `installation`. It is not copied."""


class MoveState(msgspec.Struct, frozen=True, kw_only=True):
    """Of the source: moving, moved. Of the target: copying, complete, aborted."""

    id: str
    state: Literal["moving", "moved", "copying", "complete", "aborted"]
    other: str  # the other store, without its password
    at: int
    tables: dict[str, int] = {}  # those that are copied whole, with their rows
    table: str | None = None  # the one under way, how many of its rows there are, and the key of the last
    rows: int = 0
    after: list[int | str] | None = None


_state = msgspec.json.Decoder(MoveState)


async def find_mark(driver: Driver) -> str | None:
    """Why nobody may serve it; None: one may, or it is empty."""

    async def body(tx: Transaction) -> str | None:
        row = await tx.row("find_mark") if await tx.rows("find_meta") else None
        return None if row is None else str(row["name"])

    return await driver.read(body)


async def read_state(driver: Driver) -> MoveState | None:
    row = await driver.read(lambda tx: tx.row("installation_value", MOVE))
    return None if row is None else _state.decode(row["value"])


async def write_state(tx: Transaction, state: MoveState, mark: str | None = None) -> None:
    """`mark`: the words that refuse to serve it from now on, if they change."""
    await tx.execute("set_installation_value", MOVE, msgspec.json.encode(state).decode())
    if mark is not None:
        await tx.execute("set_mark", mark)


async def clear_state(tx: Transaction) -> None:
    await tx.execute("drop_mark")
    await tx.execute("drop_installation_value", MOVE)
