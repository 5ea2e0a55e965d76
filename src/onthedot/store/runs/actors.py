"""Who asked for a run: a row beside it, written with it. Only those have one that a person asked for."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.model.actor import ChangeActor
from onthedot.store.driver import Transaction
from onthedot.store.runs.row import NewRun
from onthedot.store.shapes import Rows, Shape

__all__ = ["note_actors"]


class AskedRun(Shape, frozen=True):
    run_id: str
    actor: str
    created_at: int


async def note_actors(tx: Transaction, runs: Sequence[NewRun], actor: ChangeActor) -> None:
    """These new runs were asked for by that one. What nobody asked for has no row."""
    if runs and actor.kind != "system":
        await tx.execute("note_actors", Rows([AskedRun(run.id, actor.name, run.created_at) for run in runs]))
