"""Rows of runs in a list: how much of a page each takes, and the params that were too large to be read with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.run import RunView
from onthedot.store.driver import Row, Transaction
from onthedot.store.paging import within_bytes
from onthedot.store.queries import SMALL_BYTES
from onthedot.store.runs.views import decode_params

__all__ = ["ListedRun", "listed_run", "that_fit", "with_params"]


class ListedRun(msgspec.Struct, frozen=True):
    position: tuple[int, str]
    view: RunView
    size: int
    large_params: bool


def listed_run(row: Row, view: RunView, order: str = "slot") -> ListedRun:
    """`order`: the column by which the list is ordered, before the id."""
    params = row["params_bytes"] or 0
    texts = (
        (row["attempts"], view.error) if view.finished_at is None else (row["attempts"], row["error"], row["outcome"])
    )
    size = params + sum(len(text) for text in texts if text)
    return ListedRun((row[order], row["id"]), view, size, params > SMALL_BYTES)


def that_fit(found: Sequence[ListedRun], limit: int) -> Sequence[ListedRun]:
    """Those of the first `limit` that a page holds."""
    return found[: within_bytes(each.size for each in found[:limit])]


async def with_params(tx: Transaction, found: Sequence[ListedRun]) -> list[RunView]:
    """Those whose params are large get them now: they fit on the page."""
    large = [each.view.id for each in found if each.large_params]
    rows = await tx.rows("params_of", large) if large else ()
    params = {row["run_id"]: decode_params(row["params"]) for row in rows}
    return [
        msgspec.structs.replace(each.view, params=params.get(each.view.id)) if each.large_params else each.view
        for each in found
    ]
